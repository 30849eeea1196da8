/* What the files of the shim share: finding the real functions, communicators, operators on their way. */
#ifndef FAULTLINE_SHIM_H
#define FAULTLINE_SHIM_H
#include <stddef.h>
#include "cuda.h"
#include "ring.h"

#define FL_EXPORT __attribute__((visibility("default")))
#define FL_CALLER __builtin_return_address(0)

/* real.c: a function that we stand before, and where it may be found. */
typedef struct {
  const char *name;
  const char *const *libraries; /* sonames, up to a NULL */
  _Atomic(void *) address;
} FlReal;

void *fl_find_real(FlReal *function, const void *caller);

/* The library's own function; NULL where no library that is loaded has it. `caller` is an address in whoever called. */
static inline void *fl_real(FlReal *function, const void *caller) {
  void *address = atomic_load_explicit(&function->address, memory_order_acquire);
  return __builtin_expect(address != NULL, 1) ? address : fl_find_real(function, caller);
}

extern const char *const fl_nccl_libraries[];

/* shim-settings.c: what the environment wants, read once. */
typedef struct {
  bool isOff;           /* FAULTLINE_SHIM=0 */
  bool besidesPlugin;   /* FAULTLINE_SHIM=always */
  bool withEvents;      /* unless FAULTLINE_EVENTS=0 */
  unsigned kernelEvery; /* FAULTLINE_KERNELS: 0 none, 1 all, N about one in N; 32 */
} FlSettings;
const FlSettings *fl_settings(void);

/* Counts the forks between this process and the one that the program began as: what was cached before is void. */
extern _Atomic uint32_t fl_generation;

/* comm-ids.c: the same number on all members of a communicator, another for every communicator. */
uint64_t fl_id_of_unique(const void *ids, size_t bytes);
uint64_t fl_id_of_split(uint64_t parent, int colour, uint32_t nth);
uint64_t fl_id_of_shrink(uint64_t parent, const int *excluded, int count, uint32_t nth);
uint64_t fl_id_within_process(uint64_t what);

/* comms.c: communicators by the library's pointer. */
typedef struct {
  _Atomic(void *) pointer;
  _Atomic uint64_t id;
  _Atomic uint32_t children; /* splits and shrinks so far */
  _Atomic uint32_t index;    /* in the ring, plus 1; 0 while not registered */
} FlKnownComm;

/* Rank and size are -1 where only the library knows them. */
void fl_comm_made(void *comm, uint64_t id, int rank, int size, bool isReady);
void fl_comm_gone(void *comm);
uint64_t fl_comm_id(void *comm);
/* The number of the next child of a communicator: all members count alike, because making one is a collective call. */
uint32_t fl_comm_next_child(void *comm);
/* Index in the ring; FL_NONE where it has no place there. */
uint16_t fl_comm_index(FlHeader *ring, void *comm);
void fl_comms_forget(void);

/* operators.c: one call into the library. */
typedef struct {
  FlHeader *ring; /* NULL: nothing is recorded */
  uint64_t ticket, issuedNs;
  FlTiming *timing;
  uint8_t flags;
  bool inGroup;
} FlCall;

typedef struct {
  uint8_t kind, func;
  int dtype, peer;
  size_t elements;
  void *comm, *stream;
} FlOperator;

/* Waits in the trap, writes the record, records the first event. Every begin is followed by an end. */
void fl_operator_begin(FlCall *call, const FlOperator *what);
void fl_operator_end(FlCall *call, int result);

/* groups.c: calls between ncclGroupStart and ncclGroupEnd start together at the outermost end. */
enum { FL_GROUP_STREAMS = 16 };
typedef struct {
  unsigned depth;  /* of ncclGroupStart */
  unsigned inside; /* calls of the library that this thread is in: what it calls itself is not the job's */
  bool held, keyed;
  uint32_t members, memberCapacity;
  uint32_t streams;
  uint32_t births, birthCapacity;
  uint64_t issuedNs; /* of the first member */
  FlMember *member;
  void *stream[FL_GROUP_STREAMS];
  struct FlBirth *birth;
} FlThread;
FlThread *fl_thread(void);

/* A communicator that the library hands out when the call, or the group around it, has ended. */
typedef struct FlBirth {
  void **comm;
  uint64_t id;
  int rank, size;
} FlBirth;

/* Whether the group will time the record: false where it has no place for it. */
bool fl_group_add(FlThread *thread, uint64_t ticket, uint64_t issuedNs, void *stream);
void fl_group_birth(FlThread *thread, const FlBirth *birth, int result);
int fl_group_start(int (*real)(void), FlThread *thread);
int fl_group_end(int (*real)(void *), void *argument, FlThread *thread, bool simulated);

/* Whether operators are the shim's to record: not while the profiler plug-in does it. */
bool fl_shim_records(void);
/* Says in the ring's header who writes, where nobody did so far. */
void fl_sign(FlHeader *ring, void *comm, const char *source);

enum { FL_NCCL_SUCCESS = 0, FL_NCCL_INTERNAL_ERROR = 3, FL_NCCL_IN_PROGRESS = 7 };

#endif
