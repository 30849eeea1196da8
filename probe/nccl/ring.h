/* The ring of one process: see ../RING.md, which says what every field means. */
#ifndef FAULTLINE_RING_H
#define FAULTLINE_RING_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FL_VERSION 1
#define FL_NONE 65535

typedef struct {
  char magic[8];
  uint32_t version, headerBytes, recordBytes, recordCount;
  uint64_t recordsOffset;
  uint32_t commsOffset, commCapacity;
  uint32_t connectionsOffset, connectionCapacity;
  uint32_t namesOffset, nameCapacity;
  uint32_t wordsOffset, wordsBytes;
  uint32_t writer;
  int32_t pid, rank, worldSize, localRank, gpu;
  uint64_t startedRealtimeNs, startedMonotonicNs;
  _Atomic uint64_t anchorRealtimeNs, anchorMonotonicNs;
  uint64_t processStartTicks;
  char host[64];
  char job[128];
  char library[64];
  char source[32];
  char pad0[512 - 416];
  _Atomic uint64_t head;
  char pad1[576 - 520];
  _Atomic uint64_t dropped, lateUpdates;
  char pad2[640 - 592];
  _Atomic uint32_t commCount, connectionCount, nameCount, tablesFull;
  char pad3[704 - 656];
  _Atomic uint64_t heartbeatNs;
  char pad4[768 - 712];
  _Atomic int32_t endedHow, endedCode;
  _Atomic uint64_t endedNs, wordsLength;
  char pad5[832 - 792];
  _Atomic uint64_t phaseSinceNs;
  char phase[56];
  char pad10[1024 - 896];
  _Atomic uint64_t trapUntilNs, trapFromTicket;
  _Atomic uint64_t trappedNow, trappedCalls;
  _Atomic uint32_t stacksWanted, stacksAnswered;
  _Atomic uint32_t profileWanted, profileSteps;
  _Atomic uint32_t validationWanted, profileAnswered;
  _Atomic uint32_t validationAnswered;
  _Atomic uint32_t maskWanted;
  char pad6[1152 - 1088];
  char validation[256];
  char pad7[1536 - 1408];
  uint64_t copiedRealtimeNs, copiedMonotonicNs;
  char processState;
  char pad8[7];
  char waitsIn[64];
  char pad9[4096 - 1624];
} FlHeader;

enum { FL_COLLECTIVE = 1, FL_P2P, FL_MATRIX, FL_PYTHON_CALL, FL_GC, FL_ITERATION, FL_MEMORY, FL_KERNEL };
enum { FL_GPU_START = 1, FL_GPU_END = 2, FL_CAPTURED = 4, FL_HELD = 8, FL_SHIM = 16, FL_UNTIMED = 32, FL_FAILED = 64 };

typedef struct {
  _Atomic uint64_t stamp;
  uint8_t kind, func, dtype, flags;
  uint16_t group;
  uint8_t channels, channelsEnded;
  uint64_t a;
  uint32_t b;
  int32_t c;
  uint64_t issuedNs, startedNs, endedNs;
  uint32_t d, e;
} FlRecord;

typedef struct {
  uint64_t id;
  int32_t rank, size, nodes;
  _Atomic uint32_t flags;
  _Atomic uint64_t collectives, p2ps;
  uint64_t madeNs;
  char name[72];
  uint64_t pointer;
} FlComm;

typedef struct {
  uint16_t comm;
  uint8_t channel, isSend;
  int32_t peer;
  _Atomic uint64_t begun, finished;
  _Atomic uint32_t opsBegun, opsFinished;
  _Atomic uint64_t bytes;
  _Atomic uint8_t states[16];
  _Atomic uint64_t changedNs;
} FlConnection;

_Static_assert(sizeof(FlHeader) == 4096, "header");
_Static_assert(sizeof(FlRecord) == 64, "record");
_Static_assert(sizeof(FlComm) == 128, "communicator");
_Static_assert(sizeof(FlConnection) == 64, "connection");

/* Where everything lies in the rings that are made here and in Python. Writers go by this and not by the header: a file that
 * somebody truncated reads as zeros. Only the number of records differs; it is a power of two, so even then whole or 0. */
enum { FL_COMMS = 256, FL_CONNECTIONS = 4096, FL_NAMES = 512, FL_NAME_BYTES = 64, FL_WORDS_BYTES = 16384 };
enum {
  FL_COMMS_AT = sizeof(FlHeader),
  FL_CONNECTIONS_AT = FL_COMMS_AT + FL_COMMS * sizeof(FlComm),
  FL_NAMES_AT = FL_CONNECTIONS_AT + FL_CONNECTIONS * sizeof(FlConnection),
  FL_WORDS_AT = FL_NAMES_AT + FL_NAMES * FL_NAME_BYTES,
  FL_RECORDS_AT = (FL_WORDS_AT + FL_WORDS_BYTES + 4095) / 4096 * 4096,
};

/* The process' native ring, made at the first call; NULL where it cannot be made (said once on stderr) or the process is
 * a fork's child that has not asked yet (a child gets a ring of its own). Safe from any thread. */
FlHeader *fl_ring(void);

uint64_t fl_now(void); /* CLOCK_MONOTONIC, ns */

/* Takes a ticket and writes the record (stamp aside); returns ticket, or UINT64_MAX where it was dropped. */
uint64_t fl_append(FlHeader *ring, const FlRecord *record);

/* Opens a record for change: NULL where it was overwritten meanwhile (counted). Every open is followed by a close. */
FlRecord *fl_open(FlHeader *ring, uint64_t ticket);
void fl_close(FlRecord *record, uint64_t ticket);

/* Index of a communicator, connection or name that is added where it is new; FL_NONE (-1 for connections) where full. */
uint16_t fl_comm(FlHeader *ring, uint64_t id, int32_t rank, int32_t size, int32_t nodes, const char *name, uint64_t pointer);
int32_t fl_connection(FlHeader *ring, uint16_t comm, uint8_t channel, bool isSend, int32_t peer);
uint16_t fl_name(FlHeader *ring, const char *name);
static inline FlComm *fl_comm_at(FlHeader *ring, uint16_t index) {
  return (FlComm *)((char *)ring + FL_COMMS_AT) + index;
}
static inline FlConnection *fl_connection_at(FlHeader *ring, int32_t index) {
  return (FlConnection *)((char *)ring + FL_CONNECTIONS_AT) + index;
}

/* Waits while the agent wants calls held; true where it waited. Costs one load where there is no trap. */
bool fl_trap(FlHeader *ring);

/* NCCL's numbers and ours out of NCCL's words ("ncclFloat32", "AllReduce", "RING", "SIMPLE"); 255 or 0 where unknown. */
uint8_t fl_dtype(const char *word);
uint8_t fl_collective(const char *word);
uint8_t fl_algorithm(const char *word);
uint8_t fl_protocol(const char *word);

/* Whether the profiler plug-in records in this process: the shim then leaves operators to it. */
extern _Atomic bool fl_plugin_active;

#endif
