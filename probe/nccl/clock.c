/* The two clocks of a ring: monotonic for everything, wall clock for the anchor. */
#include <time.h>
#include "within.h"

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t fl_now(void) {
  return read_clock(CLOCK_MONOTONIC);
}

uint64_t fl_realtime(void) {
  return read_clock(CLOCK_REALTIME);
}

uint64_t fl_now_coarse(void) {
#if defined(CLOCK_MONOTONIC_COARSE)
  return read_clock(CLOCK_MONOTONIC_COARSE);
#else
  return fl_now();
#endif
}
