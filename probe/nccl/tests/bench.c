/* What the plug-in costs, in ns a call: bench LIBRARY. One thread; the best of many short rounds, because whatever else the
 * machine does only adds, and their median. What the pretended NCCL does to call it (filling in events) is in it. */
#include "pretend-nccl.h"

enum { ROUNDS = 601, CALLS = 2000 };

typedef void (*Act)(Comm *comm, int i);

static const Operator op = {0, "AllReduce", "ncclBfloat16", "RING", "SIMPLE", 4, 9, 1, 2, 1024, 0, 2, 0};
static void *last_task, *last_op, *last_step;
static pid_t own;

static void look(Comm *comm, int i) {
  (void)comm, (void)i;
  gpu_ns();
}
/* The training thread's part: all that NCCL says before its call returns. */
static void call(Comm *comm, int i) {
  (void)i;
  void *group = group_begin(comm), *api = api_call(comm, &op, group);
  last_task = task_begin(comm, &op, api);
  stop_event(comm, last_task);
  stop_event(comm, group);
}
/* The proxy thread's part for each channel. */
static void kernel(Comm *comm, int i) {
  if (i % 2 == 0) call(comm, i);
  kernel_end(comm, kernel_begin(comm, last_task, (uint8_t)(i % 2), gpu_ns()), gpu_ns());
}
static void operation(Comm *comm, int i) {
  stop_event(comm, proxy_op_begin(comm, last_task, own, (uint8_t)(i % 8), 1, 1));
}
static void step(Comm *comm, int i) {
  void *handle = step_begin(comm, last_op, i);
  step_state(comm, handle, ST_SEND_GPU_WAIT, 0);
  step_state(comm, handle, ST_SEND_PEER_WAIT, 0);
  step_state(comm, handle, ST_SEND_WAIT, 100);
  stop_event(comm, handle);
}
/* A state that NCCL says again while it polls. */
static void same_state(Comm *comm, int i) {
  (void)i;
  step_state(comm, last_step, ST_SEND_GPU_WAIT, 0);
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct {
  double best, median;
} Cost;

static Cost cost(Comm *comm, Act act) {
  static double rounds[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t began = host_ns();
    for (int i = 0; i < CALLS; i++) act(comm, i);
    rounds[round] = (double)(host_ns() - began) / CALLS;
  }
  qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
  return (Cost){rounds[0], rounds[ROUNDS / 2]};
}

static void say(const char *what, Cost of, double less) {
  printf("  %-16s %6.1f ns (median %.1f)\n", what, of.best - less, of.median - less);
}

int main(int count, char **words) {
  if (count < 2) return 2;
  own = getpid();
  for (int version = 1; version <= 6; version++) {
    Plugin plugin = load(words[1], version);
    Comm comm;
    comm_init(&comm, &plugin, 1000 + (uint64_t)version, "bench", 0, 2);
    if (comm.context == NULL) return 1;
    printf("v%d\n", version);
    double clock = cost(&comm, look).best;
    Cost calls = cost(&comm, call);
    say("recorded call", calls, 0);
    if (version >= 3) say("kernel channel", cost(&comm, kernel), calls.best / 2 + 2 * clock);
    last_op = proxy_op_begin(&comm, last_task, own, 0, 1, 1);
    say("proxy operation", cost(&comm, operation), 0);
    say("proxy step", cost(&comm, step), 0);
    last_step = step_begin(&comm, last_op, -1);
    say("polled state", cost(&comm, same_state), 0);
    if (version == 6) printf("of which a look at the clock is %.1f ns\n", clock);
    comm_finalize(&comm);
  }
  return 0;
}
