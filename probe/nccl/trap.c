/* The trap (Greyhound §4.3: operators are suspended while links are tested): calls wait while the agent wants it. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "within.h"

enum { STEP_NS = 50000 };

/* A word that kept a call for the longest time allowed: whoever set it is gone, and it keeps nobody again. */
static _Atomic uint64_t outlived;

static bool __attribute__((noinline)) wait_in_trap(FlHeader *ring, uint64_t until) {
  if (atomic_load_explicit(&ring->head, memory_order_relaxed) <
      atomic_load_explicit(&ring->trapFromTicket, memory_order_relaxed))
    return false;
  uint64_t began = fl_now();
  if (until <= began || until == atomic_load_explicit(&outlived, memory_order_relaxed)) return false;
  uint64_t longest = (uint64_t)fl_number("FAULTLINE_TRAP_MAX_MS", 0, 86400000, 60000) * 1000000u;
  if (longest == 0) return false;

  int error = errno, cancel;
  /* A thread cancelled in here would count as waiting for ever. */
  bool shielded = pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel) == 0;
  atomic_fetch_add_explicit(&ring->trappedNow, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&ring->trappedCalls, 1, memory_order_relaxed);
  for (;;) {
    struct timespec step = {.tv_nsec = STEP_NS};
    nanosleep(&step, NULL);
    until = atomic_load_explicit(&ring->trapUntilNs, memory_order_acquire);
    uint64_t now = fl_now();
    if (until <= now) break;
    if (now - began >= longest) {
      atomic_store_explicit(&outlived, until, memory_order_relaxed);
      break;
    }
  }
  atomic_fetch_sub_explicit(&ring->trappedNow, 1, memory_order_relaxed);
  if (shielded) pthread_setcancelstate(cancel, NULL);
  errno = error;
  return true;
}

bool fl_trap(FlHeader *ring) {
  uint64_t until = atomic_load_explicit(&ring->trapUntilNs, memory_order_relaxed);
  if (__builtin_expect(until == 0, 1)) return false;
  return wait_in_trap(ring, until);
}
