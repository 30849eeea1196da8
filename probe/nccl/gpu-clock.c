/* GPU time to host time. NCCL's proxy sees a GPU's time stamp a little after it was written, never before: the least
 * difference between the host's clock and the stamp is the offset plus the least delay of the polling loop.
 *
 * The two clocks drift against each other by tens of ppm, so an old least lies: what is used is the least of the running
 * window and the one before. Two seconds keep the error of 50 ppm at or below 0.2 ms, and hold hundreds of stamps in a job
 * that trains. */
#include "profiler.h"

static const uint64_t WINDOW_NS = 2000000000u;

void fl_gpu_clock_reset(GpuClock *clock) {
  atomic_store_explicit(&clock->least[0], INT64_MAX, memory_order_relaxed);
  atomic_store_explicit(&clock->least[1], INT64_MAX, memory_order_relaxed);
  atomic_store_explicit(&clock->windowNs, 0, memory_order_relaxed);
}

/* One thread of NCCL's calls this for a communicator; were it two, a sample could be lost, and nothing else. */
uint64_t fl_gpu_time(GpuClock *clock, uint64_t gpuNs, uint64_t nowNs) {
  int64_t offset = (int64_t)(nowNs - gpuNs);
  uint64_t began = atomic_load_explicit(&clock->windowNs, memory_order_relaxed);
  int64_t least = atomic_load_explicit(&clock->least[0], memory_order_relaxed);
  if (nowNs - began >= WINDOW_NS) {
    /* After a pause the last window is as old as the pause and says nothing. */
    int64_t before = nowNs - began < 2 * WINDOW_NS ? least : INT64_MAX;
    atomic_store_explicit(&clock->least[1], before, memory_order_relaxed);
    atomic_store_explicit(&clock->windowNs, nowNs, memory_order_relaxed);
    least = INT64_MAX;
  }
  if (offset < least) least = offset;
  atomic_store_explicit(&clock->least[0], least, memory_order_relaxed);
  int64_t before = atomic_load_explicit(&clock->least[1], memory_order_relaxed);
  return gpuNs + (uint64_t)(before < least ? before : least);
}
