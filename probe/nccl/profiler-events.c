/* What NCCL's events do to the ring.
 *
 * When what happens, in NCCL (read in its sources, 2.23 to 2.30):
 *   CollApi, P2pApi  v5 on, for any mask with Coll or P2p: the application's call, before anything is planned. Count and type
 *                    as called.
 *   Coll, P2p        after the kernel was launched, before the proxy gets its work; in a graph's replay, from a callback.
 *                    AllGather and Broadcast come as bytes. In a group they come sorted by size. The sequence number counts
 *                    calls of one function, so ours is counted here.
 *   their stop       right after: "handed to the GPU and the proxy", never "done".
 *   KernelCh         v3 on, from the proxy's thread (2.30: a thread of its own): one start and one stop a channel, with the
 *                    GPU's own time from v4 on. A collective has as many as `nChannels` says from v4 on; a send or receive
 *                    may have fewer (channels without a step are left out), v3 knows only the most there may be, and symmetric
 *                    kernels say 0 and have none or all: those count as ended when all channels that began have ended, and
 *                    begin again where another begins.
 *                    The stop is that of the kernel's first thread. In a send and a receive of one group, and in a tree, others
 *                    still wait for data then (seen with 2.28.9: 6,597 of 17,844 receives of a pipeline ended before their
 *                    send had begun), so what the proxy receives for an operator is part of it.
 *   ProxyOp          one a channel, direction and peer, where a network is used.
 *   nothing          of copy-engine collectives before v6, and of broadcasts that 2.29 gathers into one kernel: what the group
 *                    ends without having been heard of is flagged as not timed. Calls on communicators of one rank and calls
 *                    of no elements make no event at all. */
#include <stdlib.h>
#include "handles.h"
#include "profiler-abi.h"

_Atomic int fl_profiler_mask;

/* The latest end of a channel, and of what the proxy received or did, by the record's slot, until the last one is known: under
 * the record's own lock. */
typedef struct {
  uint64_t kernelNs, proxyNs;
} Ends;
static Ends *ends;
static uint32_t ends_count;
/* By so much the proxy may learn later that the GPU has taken its data: the kernel knows better when that was. */
enum { PROXY_LATE_NS = 200000 };
/* Parts that an operator may have before what is received is no longer counted: 255 would be too many to count. */
enum { MOST_PARTS = 128 };

void fl_events_prepare(FlHeader *ring) {
  if (ends != NULL) return;
  ends = calloc(ring->recordCount, sizeof *ends);
  if (ends != NULL) ends_count = ring->recordCount;
}

static Ends *ends_of(FlHeader *ring, uint64_t ticket) {
  uint64_t slot = ticket & (ring->recordCount - 1);
  return slot < ends_count ? &ends[slot] : NULL;
}

static inline uint8_t one_more(uint8_t count) {
  return count == UINT8_MAX ? count : (uint8_t)(count + 1);
}

static inline uint32_t since(uint64_t fromNs, uint64_t nowNs) {
  uint64_t took = nowNs > fromNs ? nowNs - fromNs : 1; /* 0 would say: not handed over yet */
  return took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
}

static inline uint32_t how(const Call *call) {
  return (uint32_t)call->algorithm | (uint32_t)call->protocol << 8;
}

static uint64_t append(Context *context, const Call *call, uint8_t channels) {
  FlHeader *ring = atomic_load_explicit(&context->ring, memory_order_relaxed);
  FlRecord record = {.kind = call->kind, .func = call->func, .dtype = call->dtype, .flags = call->flags, .channels = channels};
  if (fl_trap(ring)) record.flags |= FL_HELD;
  record.d = how(call);
  record.group = (uint16_t)atomic_load_explicit(&context->comm, memory_order_relaxed);
  record.a = call->count;
  record.c = call->root;
  if (record.group != FL_NONE) {
    FlComm *comm = fl_comm_at(ring, record.group);
    _Atomic uint64_t *counter = call->kind == FL_COLLECTIVE ? &comm->collectives : &comm->p2ps;
    record.b = (uint32_t)(atomic_fetch_add_explicit(counter, 1, memory_order_relaxed) + 1);
  }
  record.issuedNs = fl_now();
  return fl_append(ring, &record);
}

/* Calls of this thread that NCCL has not launched yet: at most a group's. */
typedef struct {
  uint64_t ticket;
  const Context *context;
  uint8_t kind, func;
} Pending;
enum { PENDING = 64 };
static _Thread_local struct {
  unsigned count;
  Pending calls[PENDING];
} group;

static void forget_pending(unsigned i) {
  for (group.count--; i < group.count; i++) group.calls[i] = group.calls[i + 1];
}

static uint64_t take_pending(const Context *context, const Call *call) {
  for (unsigned i = 0; i < group.count; i++) {
    const Pending *pending = &group.calls[i];
    if (pending->context != context || pending->kind != call->kind) continue;
    if (pending->func != call->func && call->func != 0) continue;
    uint64_t ticket = pending->ticket;
    forget_pending(i);
    return ticket;
  }
  return UINT64_MAX;
}

static void drop_pending(uint64_t ticket) {
  for (unsigned i = 0; i < group.count; i++)
    if (group.calls[i].ticket == ticket) {
      forget_pending(i);
      return;
    }
}

static bool is_wanted(const Call *call) {
  int mask = atomic_load_explicit(&fl_profiler_mask, memory_order_relaxed);
  return (mask & (call->kind == FL_COLLECTIVE ? EV_COLL | EV_CE_COLL : EV_P2P)) != 0;
}

void *fl_group_started(void) {
  group.count = 0;
  return (void *)(uintptr_t)FL_GROUP;
}

static void group_stopped(void) {
  FlHeader *ring = fl_existing_ring();
  uint64_t now = group.count > 0 && ring != NULL ? fl_now() : 0;
  for (unsigned i = 0; i < group.count && ring != NULL; i++) {
    FlRecord *record = fl_open(ring, group.calls[i].ticket);
    if (record == NULL) continue;
    if (record->e == 0) {
      record->e = since(record->issuedNs, now);
      record->flags |= FL_UNTIMED;
    }
    fl_close(record, group.calls[i].ticket);
  }
  group.count = 0;
}

void *fl_call_started(Context *context, const Call *call) {
  if (!is_wanted(call)) return NULL;
  /* Captured into a graph: it runs when the graph is replayed, and then NCCL tells of it each time. */
  if ((call->flags & FL_CAPTURED) != 0) return handle_of(FL_CAPTURED_CALL, call->dtype);
  uint64_t ticket = append(context, call, 0);
  if (ticket == UINT64_MAX) return handle_of(FL_CALL, FL_LOST);
  if (group.count < PENDING) group.calls[group.count++] = (Pending){ticket, context, call->kind, call->func};
  return handle_of(FL_CALL, ticket);
}

bool fl_knows_call(const void *parent) {
  return tag_of(parent) == FL_CALL && bits_of(parent) != FL_GROUP;
}

static unsigned bytes_of(uint8_t dtype) {
  static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return dtype < sizeof sizes ? sizes[dtype] : 1;
}

/* How the end of an operator will be known. */
static enum Tag ending_of(Context *context, const Call *call) {
  bool hasKernels = context->version >= 3 && (atomic_load_explicit(&fl_profiler_mask, memory_order_relaxed) & EV_KERNEL_CH) != 0;
  if (!hasKernels) return FL_BY_PROXY;
  return context->version >= 4 && call->kind == FL_COLLECTIVE && call->channels > 0 ? FL_COUNTED : FL_OPEN;
}

/* Where it may be that nothing will ever be heard of the operator on the GPU: said until something is heard. */
static uint8_t doubt(Context *context, const Call *call, enum Tag ending) {
  if (ending == FL_BY_PROXY) return FL_UNTIMED;
  if (ending == FL_COUNTED) return 0;
  if (call->kind == FL_COLLECTIVE) return call->channels == 0 ? FL_UNTIMED : 0;
  uint32_t index = atomic_load_explicit(&context->comm, memory_order_relaxed);
  if (index == FL_NONE) return 0;
  FlHeader *ring = atomic_load_explicit(&context->ring, memory_order_relaxed);
  return fl_comm_at(ring, (uint16_t)index)->rank == call->root ? FL_UNTIMED : 0; /* a copy to oneself */
}

void *fl_task_started(Context *context, void *parent, Call *call) {
  if (!is_wanted(call)) return NULL;
  uint64_t ticket = UINT64_MAX;
  if (fl_knows_call(parent)) {
    ticket = ticket_of(parent);
    if (ticket == FL_LOST) return NULL;
    drop_pending(ticket);
  } else if (tag_of(parent) == FL_CAPTURED_CALL) {
    call->flags |= FL_CAPTURED;
    uint8_t dtype = (uint8_t)ticket_of(parent);
    if (call->dtype == 0 && dtype != 255) { /* bytes, of which NCCL thinks here */
      call->dtype = dtype;
      call->count /= bytes_of(dtype);
    }
  } else if (context->version >= 5) {
    ticket = take_pending(context, call);
  }
  enum Tag ending = ending_of(context, call);
  uint8_t channels = ending == FL_COUNTED ? call->channels : 0, unsure = doubt(context, call, ending);
  if (ticket == UINT64_MAX) {
    /* Before v5 this is the first that is heard of a call. The kernel waits already, but not the proxy's part of it. */
    call->flags |= unsure;
    ticket = append(context, call, channels);
    return ticket == UINT64_MAX ? NULL : handle_of(ending, ticket);
  }
  FlRecord *record = fl_open(atomic_load_explicit(&context->ring, memory_order_relaxed), ticket);
  if (record == NULL) return NULL;
  record->flags = (uint8_t)((record->flags & ~FL_UNTIMED) | unsure);
  record->d = how(call);
  record->channels = channels;
  if (call->kind == FL_P2P) record->c = call->root; /* which the call's own event did not say */
  fl_close(record, ticket);
  return handle_of(ending, ticket);
}

static void task_stopped(uint64_t ticket) {
  FlHeader *ring = fl_existing_ring();
  FlRecord *record = ring == NULL ? NULL : fl_open(ring, ticket);
  if (record == NULL) return;
  record->e = since(record->issuedNs, fl_now());
  fl_close(record, ticket);
}

/* A part of an operator begins: a channel, or an operation of the proxy. */
void fl_part_started(FlRecord *record, uint64_t startedNs, uint8_t byGpu, bool isOpen) {
  /* It cannot have begun before it was issued: what is earlier is the clocks' error, or, before v5, the time that NCCL takes
   * from the launch until it tells of the operator. */
  if (startedNs < record->issuedNs) startedNs = record->issuedNs;
  if (record->startedNs == 0 || startedNs < record->startedNs) record->startedNs = startedNs;
  record->flags = (uint8_t)((record->flags & ~FL_UNTIMED) | byGpu);
  if (!isOpen) return;
  record->channels = one_more(record->channels);
  record->endedNs = 0;
}

bool fl_part_joined(FlRecord *record) {
  if (record->channels >= MOST_PARTS) return false;
  record->channels++;
  record->endedNs = 0;
  return true;
}

void fl_part_stopped(FlHeader *ring, FlRecord *record, uint64_t ticket, uint64_t endedNs, enum Part part, uint8_t byGpu) {
  Ends own = {0}, *latest = ends_of(ring, ticket);
  if (latest == NULL) latest = &own;
  if (record->channelsEnded == 0) *latest = own;
  uint64_t *end = part == FL_KERNEL_PART ? &latest->kernelNs : &latest->proxyNs;
  if (*end < endedNs) *end = endedNs;
  record->flags |= byGpu;
  record->channelsEnded = one_more(record->channelsEnded);
  if (record->channels == UINT8_MAX) {
    record->flags |= FL_UNTIMED; /* More parts than can be counted: the last one is not known. */
    return;
  }
  if (record->channelsEnded < record->channels) return;
  bool byKernel = latest->kernelNs != 0 && latest->proxyNs <= latest->kernelNs + PROXY_LATE_NS;
  if (!byKernel) record->flags &= (uint8_t)~FL_GPU_END;
  endedNs = byKernel ? latest->kernelNs : latest->proxyNs;
  record->endedNs = endedNs < record->startedNs ? record->startedNs : endedNs;
}

void *fl_kernel_started(Context *context, void *parent, uint64_t gpuNs) {
  enum Tag tag = tag_of(parent);
  if (tag != FL_COUNTED && tag != FL_OPEN) return NULL;
  uint64_t ticket = ticket_of(parent), now = fl_now();
  uint64_t at = gpuNs == 0 ? now : fl_gpu_time(&context->clock, gpuNs, now);
  FlRecord *record = fl_open(atomic_load_explicit(&context->ring, memory_order_relaxed), ticket);
  if (record == NULL) return NULL;
  fl_part_started(record, at, gpuNs == 0 ? 0 : FL_GPU_START, tag == FL_OPEN);
  fl_close(record, ticket);
  return handle_of(FL_CHANNEL, (uint64_t)fl_context_index(context) << CONTEXT_AT | (ticket & FL_CHANNEL_TICKET));
}

void fl_kernel_stopped(void *handle, uint64_t gpuNs) {
  if (tag_of(handle) != FL_CHANNEL) return;
  Context *context = fl_context_at((unsigned)(ticket_of(handle) >> CONTEXT_AT));
  if (context == NULL) return;
  FlHeader *ring = atomic_load_explicit(&context->ring, memory_order_relaxed);
  uint64_t ticket = ticket_of(handle) & FL_CHANNEL_TICKET, now = fl_now();
  uint64_t at = gpuNs == 0 ? now : fl_gpu_time(&context->clock, gpuNs, now);
  FlRecord *record = fl_open(ring, ticket);
  if (record == NULL) return;
  fl_part_stopped(ring, record, ticket, at, FL_KERNEL_PART, gpuNs == 0 ? 0 : FL_GPU_END);
  fl_close(record, ticket);
}

/* From v4 on the GPU's time comes before the stop, as a state; v3 has the stop alone. */
static void kernel_event_stopped(void *handle) {
  Context *context = fl_context_at((unsigned)(ticket_of(handle) >> CONTEXT_AT));
  if (context != NULL && context->version == 3) fl_kernel_stopped(handle, 0);
}

void fl_stopped(void *handle) {
  switch (tag_of(handle)) {
    case FL_CALL:
      if (bits_of(handle) == FL_GROUP) group_stopped();
      return;
    case FL_COUNTED:
    case FL_OPEN:
    case FL_BY_PROXY:
      task_stopped(ticket_of(handle));
      return;
    case FL_PROXY:
      fl_proxy_stopped(handle);
      return;
    case FL_CHANNEL:
      kernel_event_stopped(handle);
      return;
    default:
      return;
  }
}
