/* What a call costs. Run it bare and under LD_PRELOAD; the difference is the shim's (bench.sh). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scenarios.h"
#include "stub.h"

enum { CALLS = 20000, REPEATS = 15 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median over repeats. Work takes no time on the stub's GPU, so that events come back at once; between repeats, the thread
 * that looks at them catches up. */
static double nanoseconds(void (*call)(void *), void *argument) {
  double times[REPEATS];
  for (int r = 0; r < REPEATS; r++) {
    uint64_t sum = 0;
    for (int part = 0; part < CALLS; part += 1000) {
      uint64_t before = stub_now();
      for (int i = 0; i < 1000; i++) call(argument);
      sum += stub_now() - before;
      uint64_t until = stub_now() + 8000000;
      while (stub_now() < until) until_idle();
    }
    times[r] = (double)sum / CALLS;
  }
  qsort(times, REPEATS, sizeof times[0], by_value);
  return times[REPEATS / 2];
}

static char buffer[8];
static void reduce(void *comm) {
  ncclAllReduce(buffer, buffer, 0, 7, 0, comm, stub_stream(0));
}
static void grouped(void *comm) {
  ncclGroupStart();
  ncclAllReduce(buffer, buffer, 0, 7, 0, comm, stub_stream(0));
  ncclGroupEnd();
}
static void product(void *handle) {
  static const float one = 1;
  cublasSgemm_v2(handle, 1, 0, 100, 200, 300, &one, buffer, 304, buffer, 304, &one, buffer, 104);
}

void bench(void) {
  UniqueId id;
  memset(&id, 1, sizeof id);
  void *comm = NULL;
  ncclCommInitRank(&comm, 2, id, 0);
  StubHandle handle = {stub_stream(1)};
  double r = nanoseconds(reduce, comm), g = nanoseconds(grouped, comm), p = nanoseconds(product, &handle);
  printf("ncclAllReduce %.0f  in a group %.0f  cublasSgemm %.0f  (ns)\n", r, g, p);
}
