/* Plays NCCL before the plug-in, without a GPU: driver LIBRARY MODE [ARGUMENTS]. ../../../test/system/probe-nccl.test.ts says what
 * each mode is for. Exit status 3: the plug-in did what no plug-in may do. */
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include "play.h"
#include "ring-checks.h"

static const Operator all_reduce = {0, "AllReduce", "ncclBfloat16", "RING", "SIMPLE", 4, 9, 1, 2, 1024, 0, 2, 0};
static const Operator broadcast = {0, "Broadcast", "ncclFloat32", "TREE", "LL", 0, 7, 0, 0, 256, 3, 1, 0};
static const Operator gather = {0, "AllGather", "ncclFloat32", "NVLS", "LL128", 2, 7, 4, 1, 512, 0, 1, 0};
static const Operator send_op = {1, "Send", "ncclFloat16", "", "", 6, 6, 0, 0, 64, 5, 4, 0};
static const Operator receive_op = {1, "Recv", "ncclFloat16", "", "", 7, 6, 0, 0, 64, 5, 4, 0};

static void *launch(Comm *comm, const Operator *op) {
  void *group = group_begin(comm), *api = api_call(comm, op, group), *task = task_begin(comm, op, api);
  stop_event(comm, task);
  stop_event(comm, group);
  return task;
}

static void complete(Comm *comm, const Operator *op) {
  void *task = launch(comm, op);
  for (uint8_t c = 0; c < op->channels; c++) channel_work(comm, task, c, 1, 4, 100);
}

static int scene(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 0xabcdef0123456789u, "dp group", 3, 8);
  printf("{\"mask\":%d}\n", comm.mask);
  complete(&comm, &all_reduce);
  Operator bytes = gather; /* as the task's event has it */
  bytes.count *= 4, bytes.dtype = "ncclInt8", bytes.dtypeNumber = 0;
  void *group = group_begin(&comm), *api = api_call(&comm, &gather, group), *task = task_begin(&comm, &bytes, api);
  stop_event(&comm, task);
  stop_event(&comm, group);
  for (uint8_t c = 0; c < gather.channels; c++) channel_work(&comm, task, c, 1, 4, 100);

  /* A pair in one group; the receive has fewer channels than NCCL said. */
  group = group_begin(&comm);
  void *sendApi = api_call(&comm, &send_op, group), *receiveApi = api_call(&comm, &receive_op, group);
  void *sendTask = task_begin(&comm, &send_op, sendApi), *receiveTask = task_begin(&comm, &receive_op, receiveApi);
  stop_event(&comm, sendTask);
  stop_event(&comm, receiveTask);
  stop_event(&comm, group);
  for (uint8_t c = 0; c < send_op.channels; c++) channel_work(&comm, sendTask, c, 5, 1, 100);
  for (uint8_t c = 0; c + 1 < receive_op.channels; c++) channel_work(&comm, receiveTask, c, 5, 1, 100);

  /* One that NCCL never tells of again (v5 on), and one of which only the task tells. */
  group = group_begin(&comm);
  api_call(&comm, &broadcast, group);
  stop_event(&comm, group);
  task = task_begin(&comm, &broadcast, NULL);
  stop_event(&comm, task);
  channel_work(&comm, task, 0, 1, 4, 100);

  /* Captured once, replayed twice. */
  Operator captured = gather;
  captured.isCaptured = 1;
  group = group_begin(&comm);
  api = api_call(&comm, &captured, group);
  stop_event(&comm, group);
  for (int replay = 0; replay < 2; replay++) {
    task = task_begin(&comm, &bytes, api);
    stop_event(&comm, task);
    channel_work(&comm, task, 0, 1, 4, 100);
  }

  /* Work for another process: parents that are not ours are not touched. */
  if (proxy_op_begin(&comm, (void *)(uintptr_t)0x7f0000001000u, getpid() + 1, 0, 1, 1) != NULL) return 3;
  comm_finalize(&comm);
  /* What comes after is not for a context that was closed. */
  if (comm.context != NULL && launch(&comm, &all_reduce) != NULL) return 3;
  return 0;
}

/* An operator that stays: both channels began, one ended, one step waits for the wire. */
static int hang(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 7, "stuck", 0, 2);
  for (int i = 0; i < 10; i++) complete(&comm, &all_reduce);
  void *task = launch(&comm, &all_reduce);
  void *kernels[2] = {kernel_begin(&comm, task, 0, gpu_ns()), kernel_begin(&comm, task, 1, gpu_ns())};
  void *op = proxy_op_begin(&comm, task, getpid(), 1, 1, 1);
  void *step = step_begin(&comm, op, 0);
  step_state(&comm, step, ST_SEND_WAIT, 100);
  kernel_end(&comm, kernels[0], gpu_ns());
  printf("{\"ready\":true}\n");
  fflush(stdout);
  while (pause() == -1) continue;
  return 0;
}

static int with_fork(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 11, "parent", 0, 2);
  for (int i = 0; i < 3; i++) complete(&comm, &all_reduce);
  pid_t child = fork();
  if (child == 0) {
    launch(&comm, &all_reduce); /* the parent's context: nothing, and no harm */
    Comm own;
    comm_init(&own, plugin, 12, "child", 0, 2);
    for (int i = 0; i < 2; i++) complete(&own, &broadcast);
    exit(7);
  }
  int status;
  waitpid(child, &status, 0);
  /* One that never records has no ring, and does not end the parent's. */
  pid_t idle = fork();
  if (idle == 0) exit(9);
  waitpid(idle, &status, 0);
  complete(&comm, &all_reduce);
  printf("{\"parent\":%d,\"child\":%d}\n", (int)getpid(), (int)child);
  return 0;
}

static void own_handler(int number) {
  (void)number;
  _exit(42);
}

static int by_signal(const Plugin *plugin, int number, bool isHandled) {
  if (isHandled) signal(number, own_handler);
  Comm comm;
  comm_init(&comm, plugin, 13, "", 0, 2);
  complete(&comm, &all_reduce);
  if (number == SIGSEGV && !isHandled) {
    volatile int *volatile nowhere = (volatile int *)16;
    return *nowhere;
  }
  kill(getpid(), number);
  pause();
  return 0;
}

/* Process 1 of a container lives on. */
static int passed_by(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 18, "", 0, 2);
  kill(getpid(), SIGTERM);
  complete(&comm, &all_reduce);
  printf("{\"pid\":%d}\n", (int)getpid());
  return 0;
}

static void *finish(void *main_thread) {
  pthread_join(*(pthread_t *)main_thread, NULL);
  printf("{\"finished\":true}\n");
  return NULL;
}

/* The main thread leaves, and another one has still something to do. */
static int main_leaves(const Plugin *plugin) {
  static pthread_t self;
  self = pthread_self();
  Comm comm;
  comm_init(&comm, plugin, 19, "", 0, 2);
  complete(&comm, &all_reduce);
  pthread_t other;
  if (pthread_create(&other, NULL, finish, &self) != 0) return 3;
  pthread_exit(NULL);
}

static void take_a_while(long ms) {
  struct timespec left = {.tv_nsec = ms * 1000000};
  while (nanosleep(&left, &left) != 0) continue;
}

/* Two channels, each with two steps on their way together: in the first they wait for the wire, in the second for the GPU. */
static int on_the_wire(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 20, "", 0, 2);
  for (int slow = 0; slow < 2; slow++) {
    void *task = launch(&comm, &all_reduce), *kernels[2], *steps[2];
    for (uint8_t c = 0; c < 2; c++) kernels[c] = kernel_begin(&comm, task, c, gpu_ns());
    for (uint8_t c = 0; c < 2; c++) {
      void *op = proxy_op_begin(&comm, task, getpid(), c, 1, 1);
      for (int s = 0; s < 2; s++) steps[s] = step_begin(&comm, op, s);
      if (c == 1) take_a_while(30);
      for (int s = 0; s < 2; s++) step_state(&comm, steps[s], ST_SEND_WAIT, 100);
      if (c == 0 && slow) take_a_while(20);
      stop_event(&comm, steps[0]);
      if (c == 0 && slow) take_a_while(10);
      stop_event(&comm, steps[1]);
      stop_event(&comm, op);
    }
    for (uint8_t c = 0; c < 2; c++) kernel_end(&comm, kernels[c], gpu_ns());
  }
  return 0;
}

/* The kernel's first thread is through at once: first others still wait for data, then they do not. */
static int late_data(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 21, "", 0, 2);
  for (int isLate = 1; isLate >= 0; isLate--) {
    void *task = launch(&comm, &all_reduce), *kernels[2], *receives[2];
    for (uint8_t c = 0; c < 2; c++) {
      receives[c] = proxy_op_begin(&comm, task, getpid(), c, 0, 1);
      kernels[c] = kernel_begin(&comm, task, c, gpu_ns());
    }
    for (uint8_t c = 0; c < 2; c++) kernel_end(&comm, kernels[c], gpu_ns());
    stop_event(&comm, receives[0]);
    if (isLate) take_a_while(30);
    stop_event(&comm, receives[1]);
  }
  return 0;
}

/* A call for each byte on stdin. */
static int on_request(const Plugin *plugin) {
  Comm comm;
  comm_init(&comm, plugin, 14, "", 0, 2);
  printf("{\"pid\":%d}\n", (int)getpid());
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    launch(&comm, &all_reduce);
    printf("{\"passed\":true}\n");
    fflush(stdout);
  }
  return 0;
}

static int many_comms(const Plugin *plugin) {
  for (int i = 0; i < 300; i++) {
    Comm comm;
    comm_init(&comm, plugin, 100 + (uint64_t)i, "", 0, 2);
    complete(&comm, &all_reduce);
    comm_finalize(&comm);
  }
  return 0;
}

/* A record that falls into a slot in use is lost, and its call still counts once. */
static int lost(const Plugin *plugin, const char *library) {
  Api api = ring_api(library);
  Comm comm;
  comm_init(&comm, plugin, 17, "", 0, 2);
  FlHeader *ring = api.ring();
  for (uint32_t i = 0; i < ring->recordCount; i++) complete(&comm, &all_reduce);
  FlRecord *open = api.open(ring, 0);
  if (open == NULL) return 3;
  complete(&comm, &all_reduce);
  api.close(open, 0);
  complete(&comm, &all_reduce);
  return 0;
}

static int without_ring(const Plugin *plugin, bool isLimited) {
  if (isLimited) {
    struct rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  Comm comm;
  comm_init(&comm, plugin, 15, "", 0, 2);
  complete(&comm, &all_reduce);
  comm_finalize(&comm);
  Comm again; /* said once, not for each communicator */
  comm_init(&again, plugin, 16, "", 0, 2);
  printf("{\"mask\":%d}\n", again.mask);
  return 0;
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "driver LIBRARY MODE [VERSION] [NUMBER] [NUMBER]\n");
    return 2;
  }
  const char *library = words[1], *mode = words[2];
  int version = count > 3 ? atoi(words[3]) : 5;
  int first = count > 4 ? atoi(words[4]) : 0, second = count > 5 ? atoi(words[5]) : 0;
  if (strcmp(mode, "play") == 0) return play(library, version, first, second);
  if (strcmp(mode, "protocol") == 0) return protocol(library);
  if (strcmp(mode, "hammer") == 0) return hammer(library);
  Plugin plugin = load(library, version);
  if (strcmp(mode, "scene") == 0) return scene(&plugin);
  if (strcmp(mode, "late-data") == 0) return late_data(&plugin);
  if (strcmp(mode, "hang") == 0) return hang(&plugin);
  if (strcmp(mode, "fork") == 0) return with_fork(&plugin);
  if (strcmp(mode, "signal") == 0) return by_signal(&plugin, first, false);
  if (strcmp(mode, "handled") == 0) return by_signal(&plugin, first, true);
  if (strcmp(mode, "passed-by") == 0) return passed_by(&plugin);
  if (strcmp(mode, "main-leaves") == 0) return main_leaves(&plugin);
  if (strcmp(mode, "request") == 0) return on_request(&plugin);
  if (strcmp(mode, "lost") == 0) return lost(&plugin, library);
  if (strcmp(mode, "wire") == 0) return on_the_wire(&plugin);
  if (strcmp(mode, "comms") == 0) return many_comms(&plugin);
  if (strcmp(mode, "none") == 0) return without_ring(&plugin, false);
  if (strcmp(mode, "limit") == 0) return without_ring(&plugin, true);
  if (strcmp(mode, "exit") == 0) {
    scene(&plugin);
    exit(first);
  }
  if (strcmp(mode, "exec") == 0) {
    scene(&plugin);
    execl(words[0], words[0], library, "exit", words[3], "0", (char *)NULL);
  }
  fprintf(stderr, "no such mode: %s\n", mode);
  return 2;
}
