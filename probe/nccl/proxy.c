/* The proxy's operations and steps: how far each connection has come, and what its steps wait for. */
#include "handles.h"
#include "profiler-abi.h"

enum { PLACES = 16, CONNECTIONS = 4096, WIRE_AT = 16 };

/* What the proxy's thread must remember of a connection beyond what the ring shows. One thread a connection. */
typedef struct {
  const void *op;
  int step;
  uint32_t bytes;
} Step;
static Step progress[CONNECTIONS][PLACES];

/* Of a connection that sends: steps that are on the wire (posted, and the network has not said that they are through), since
 * when there is one, and for how long there was one since the last operation ended. In a ring that one slow link throttles
 * the sends of all others are through at once, and what they wait for is their own GPU or the peer's credit. */
typedef struct {
  unsigned steps;
  uint64_t sinceNs, busyNs;
} Wire;
static Wire wires[CONNECTIONS];

static void wire_taken(Wire *wire) {
  if (wire->steps++ == 0) wire->sinceNs = fl_now();
}

static void wire_left(Wire *wire) {
  if (wire->steps > 0 && --wire->steps == 0) wire->busyNs += fl_now() - wire->sinceNs;
}

/* Microseconds in 16 bits, 12 of them counting: at least 1, for 0 says that nobody knows. */
static uint32_t wire_code(uint64_t ns) {
  uint64_t us = ns / 1000 + 1;
  uint32_t twos = 0;
  for (; us > 0xfff; us >>= 1) twos++;
  return twos > 0xf ? 0xffff : twos << 12 | (uint32_t)us;
}

/* Where a step is that was started before and has not finished; -1 where it is new. A receive that the network does not take
 * yet is started again and again; those of collectives and of sends and receives share a connection here, so the one that
 * is started again need not be the latest. */
static int place_of(FlConnection *connection, const Step *steps, const void *op, int step) {
  uint64_t begun = atomic_load_explicit(&connection->begun, memory_order_relaxed);
  uint64_t finished = atomic_load_explicit(&connection->finished, memory_order_relaxed);
  for (uint64_t i = begun; i-- > finished && begun - i <= PLACES;) {
    unsigned place = (unsigned)(i % PLACES);
    if (steps[place].op == op && steps[place].step == step) return (int)place;
  }
  return -1;
}

void *fl_proxy_op_started(Context *context, void *parent, pid_t pid, uint8_t channel, bool isSend, int32_t peer) {
  FlHeader *ring = atomic_load_explicit(&context->ring, memory_order_relaxed);
  /* Work for another process' operator (PXN): parent and context are numbers of that process. */
  if (pid != ring->pid) return NULL;
  uint32_t comm = atomic_load_explicit(&context->comm, memory_order_relaxed);
  if (comm == FL_NONE) return NULL;
  int32_t index = fl_connection(ring, (uint16_t)comm, channel, isSend, peer);
  if (index < 0 || index >= CONNECTIONS) return NULL;
  FlConnection *connection = fl_connection_at(ring, index);
  uint32_t serial = atomic_load_explicit(&connection->opsBegun, memory_order_relaxed) + 1;
  atomic_store_explicit(&connection->opsBegun, serial, memory_order_relaxed);
  /* What a parent had on the wire when it forked is not the child's. */
  if (serial == 1) wires[index] = (Wire){0};
  atomic_store_explicit(&connection->changedNs, fl_now_coarse(), memory_order_relaxed);

  uint64_t value = (uint64_t)index << CONNECTION_AT | (uint64_t)(serial & 0x7f) << SERIAL_AT;
  enum Tag tag = tag_of(parent);
  uint64_t ticket = ticket_of(parent);
  /* An operator is not over before what it receives has come, whatever its kernel says. */
  if (tag == FL_BY_PROXY || (!isSend && (tag == FL_COUNTED || tag == FL_OPEN))) {
    FlRecord *record = fl_open(ring, ticket);
    bool isPart = record != NULL;
    if (isPart && tag == FL_BY_PROXY) fl_part_started(record, fl_now(), 0, true);
    else if (isPart) isPart = fl_part_joined(record);
    if (record != NULL) fl_close(record, ticket);
    if (isPart) value |= (uint64_t)1 << TIMES_RECORD_AT;
  }
  if (tag == FL_COUNTED || tag == FL_OPEN || (value >> TIMES_RECORD_AT & 1) != 0)
    value |= (uint64_t)1 << OF_RECORD_AT | (ticket & FL_SHORT_TICKET);
  return handle_of(FL_PROXY, value);
}

static inline int32_t connection_of(const void *handle) {
  return (int32_t)(bits_of(handle) >> CONNECTION_AT) & (CONNECTIONS - 1);
}

static void proxy_op_stopped(const void *handle) {
  FlHeader *ring = fl_existing_ring();
  if (ring == NULL) return;
  FlConnection *connection = fl_connection_at(ring, connection_of(handle));
  atomic_store_explicit(&connection->opsFinished, atomic_load_explicit(&connection->opsFinished, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  atomic_store_explicit(&connection->changedNs, fl_now_coarse(), memory_order_relaxed);
  Wire *wire = &wires[connection_of(handle)];
  uint32_t code = wire->busyNs > 0 ? wire_code(wire->busyNs) : 0;
  wire->busyNs = 0;
  bool timesRecord = (bits_of(handle) >> TIMES_RECORD_AT & 1) != 0;
  if ((bits_of(handle) >> OF_RECORD_AT & 1) == 0 || (code == 0 && !timesRecord)) return;
  uint64_t ticket = bits_of(handle) & FL_SHORT_TICKET;
  FlRecord *record = fl_open(ring, ticket);
  if (record == NULL) return;
  /* Of several channels the one that took longest. */
  if (code > record->d >> WIRE_AT) record->d = (record->d & ((1u << WIRE_AT) - 1)) | code << WIRE_AT;
  if (timesRecord) fl_part_stopped(ring, record, ticket, fl_now(), FL_PROXY_PART, 0);
  fl_close(record, ticket);
}

void *fl_proxy_step_started(void *parent, int step) {
  FlHeader *ring = fl_existing_ring();
  if (ring == NULL || tag_of(parent) != FL_PROXY) return NULL;
  int32_t index = connection_of(parent);
  FlConnection *connection = fl_connection_at(ring, index);
  int place = place_of(connection, progress[index], parent, step);
  if (place < 0) {
    uint64_t begun = atomic_load_explicit(&connection->begun, memory_order_relaxed);
    place = (int)(begun % PLACES);
    /* More at once than there are places: the one that was here is no longer followed. */
    if (atomic_load_explicit(&connection->states[place], memory_order_relaxed) == ST_SEND_WAIT) wire_left(&wires[index]);
    progress[index][place] = (Step){.op = parent, .step = step};
    atomic_store_explicit(&connection->states[place], connection->isSend ? ST_SEND_GPU_WAIT : ST_RECV_WAIT,
                          memory_order_relaxed);
    atomic_store_explicit(&connection->begun, begun + 1, memory_order_release);
    atomic_store_explicit(&connection->changedNs, fl_now_coarse(), memory_order_relaxed);
  }
  return handle_of(FL_PROXY, FL_STEP | (uint64_t)index << CONNECTION_AT | (uint64_t)place);
}

void fl_proxy_step_state(void *handle, int state, size_t bytes) {
  FlHeader *ring = fl_existing_ring();
  if (ring == NULL || tag_of(handle) != FL_PROXY || (bits_of(handle) & FL_STEP) == 0) return;
  int32_t index = connection_of(handle);
  unsigned place = (unsigned)(uintptr_t)handle % PLACES;
  FlConnection *connection = fl_connection_at(ring, index);
  /* The proxy polls: it says the same state as long as it lasts. */
  uint8_t before = atomic_load_explicit(&connection->states[place], memory_order_relaxed);
  if (before == state) return;
  if (state == ST_SEND_WAIT) wire_taken(&wires[index]);
  else if (before == ST_SEND_WAIT) wire_left(&wires[index]);
  atomic_store_explicit(&connection->states[place], (uint8_t)state, memory_order_relaxed);
  /* Of the send just posted, of the receive just come in; before, NCCL shows the size of another step. */
  if (state == ST_SEND_WAIT || state == ST_RECV_FLUSH_WAIT) progress[index][place].bytes = (uint32_t)bytes;
  atomic_store_explicit(&connection->changedNs, fl_now_coarse(), memory_order_relaxed);
}

static void proxy_step_stopped(const void *handle) {
  FlHeader *ring = fl_existing_ring();
  if (ring == NULL) return;
  int32_t index = connection_of(handle);
  unsigned place = (unsigned)(uintptr_t)handle % PLACES;
  FlConnection *connection = fl_connection_at(ring, index);
  uint64_t bytes = atomic_load_explicit(&connection->bytes, memory_order_relaxed) + progress[index][place].bytes;
  progress[index][place].op = NULL;
  if (atomic_load_explicit(&connection->states[place], memory_order_relaxed) == ST_SEND_WAIT) wire_left(&wires[index]);
  atomic_store_explicit(&connection->bytes, bytes, memory_order_relaxed);
  atomic_store_explicit(&connection->states[place], 0, memory_order_relaxed);
  atomic_store_explicit(&connection->finished, atomic_load_explicit(&connection->finished, memory_order_relaxed) + 1,
                        memory_order_release);
  atomic_store_explicit(&connection->changedNs, fl_now_coarse(), memory_order_relaxed);
}

void fl_proxy_stopped(void *handle) {
  if ((bits_of(handle) & FL_STEP) != 0) proxy_step_stopped(handle);
  else proxy_op_stopped(handle);
}
