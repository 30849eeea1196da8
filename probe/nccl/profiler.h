/* The plug-in's inside: contexts (one a communicator), and what events do to the ring. Whatever differs between the versions
 * of the interface is settled in profiler.c. */
#ifndef FAULTLINE_PROFILER_H
#define FAULTLINE_PROFILER_H
#include <sys/types.h>
#include "profiler-abi.h"
#include "within.h"

/* gpu-clock.c: when, by CLOCK_MONOTONIC, the GPU's globaltimer showed something. One for each communicator, as each is on one
 * GPU and GPUs' timers differ. */
typedef struct {
  _Atomic int64_t least[2]; /* of this window and the one before */
  _Atomic uint64_t windowNs;
} GpuClock;
void fl_gpu_clock_reset(GpuClock *clock);
uint64_t fl_gpu_time(GpuClock *clock, uint64_t gpuNs, uint64_t nowNs);

typedef struct {
  _Atomic(FlHeader *) ring; /* that `comm` is of; NULL: free */
  _Atomic uint32_t comm;    /* FL_NONE where its table was full or nothing is known yet (v1 to v3 before their first event) */
  int version;
  GpuClock clock;
} Context;

/* contexts.c: a context's number is what NCCL carries as its pointer, so a stale one cannot harm. */
enum { FL_CONTEXTS = 1024 };
/* Not a small number, so that a mistaken pointer or integer is not taken for one. */
#define FL_CONTEXT_BASE ((uintptr_t)0xfa171000u)
extern Context fl_context_table[FL_CONTEXTS];
void *fl_context_open(FlHeader *ring, uint16_t comm, int version);
void fl_context_close(void *number);

/* NULL as well where it is a parent's, from before a fork. */
static inline Context *fl_context_at(uintptr_t index) {
  if (index >= FL_CONTEXTS) return NULL;
  FlHeader *ring = atomic_load_explicit(&fl_context_table[index].ring, memory_order_acquire);
  return ring != NULL && ring == fl_existing_ring() ? &fl_context_table[index] : NULL;
}
static inline Context *fl_context(void *number) {
  return fl_context_at((uintptr_t)number - FL_CONTEXT_BASE);
}
static inline unsigned fl_context_index(const Context *context) {
  return (unsigned)(context - fl_context_table);
}

/* What one call is, in the ring's numbers. */
typedef struct {
  uint8_t kind, func, dtype, flags;
  uint8_t algorithm, protocol;
  uint8_t channels; /* 0 where NCCL does not know */
  uint64_t count;
  int32_t root; /* or peer */
} Call;

/* profiler-events.c, proxy.c */
extern _Atomic int fl_profiler_mask;
void fl_events_prepare(FlHeader *ring); /* once, before the first event */
void *fl_call_started(Context *context, const Call *call); /* v5: the application calls */
bool fl_knows_call(const void *parent);                    /* so that its words need not be looked up again */
void *fl_group_started(void);
void *fl_task_started(Context *context, void *parent, Call *call); /* NCCL has launched it */
void *fl_kernel_started(Context *context, void *parent, uint64_t gpuNs);
void fl_kernel_stopped(void *handle, uint64_t gpuNs);
void *fl_proxy_op_started(Context *context, void *parent, pid_t pid, uint8_t channel, bool isSend, int32_t peer);
void *fl_proxy_step_started(void *parent, int step);
void fl_proxy_step_state(void *handle, int state, size_t bytes);
void fl_stopped(void *handle);


/* profiler-init.c */
int fl_init_v1(void **context, int *mask);
int fl_init_v2(void **context, int *mask);
int fl_init_v3(void **context, int *mask);
int fl_init_v4(void **context, int *mask, const char *name, uint64_t id, int nodes, int size, int rank, NcclLogger log);
int fl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int size, int rank, NcclLogger log);
int fl_init_v6(void **context, uint64_t id, int *mask, const char *name, int nodes, int size, int rank, NcclLogger log);
int fl_finalize(void *context);

#endif
