/* Plays PyTorch: a library with NCCL among its own dependencies, opened for itself alone. Each scenario says in one line of
 * JSON what it did; what the probe made of it is in the ring. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "scenarios.h"
#include "stub.h"

static char streams[16];
void *stub_stream(int i) {
  return &streams[i];
}
static char buffer[16];
enum { FLOAT = 7, BFLOAT = 9, SUM = 0 };

static void pause_ms(int ms) {
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

void until_idle(void) {
  while (!stub_idle()) pause_ms(1);
}

static UniqueId unique(int seed) {
  UniqueId id;
  memset(&id, seed, sizeof id);
  return id;
}

static void *world(int size, int rank) {
  void *comm = NULL;
  ncclCommInitRank(&comm, size, unique(1), rank);
  return comm;
}

static int reduce(void *comm, size_t count, int stream) {
  return ncclAllReduce(buffer, buffer, count, FLOAT, SUM, comm, stub_stream(stream));
}

static void operators(void) {
  void *c = world(4, 2), *s = stub_stream(0), *b = buffer;
  int results = 0;
  results |= ncclAllReduce(b, b, 101000, FLOAT, SUM, c, s);
  results |= ncclAllGather(b, b, 102000, BFLOAT, c, s);
  results |= ncclReduceScatter(b, b, 103000, FLOAT, SUM, c, s);
  results |= ncclBroadcast(b, b, 104000, FLOAT, 3, c, s);
  results |= ncclBcast(b, 105000, FLOAT, 1, c, s);
  results |= ncclReduce(b, b, 106000, FLOAT, SUM, 2, c, s);
  results |= ncclAlltoAll(b, b, 107000, FLOAT, c, s);
  results |= ncclGather(b, b, 108000, FLOAT, 1, c, s);
  results |= ncclScatter(b, b, 109000, FLOAT, 3, c, s);
  results |= ncclSend(b, 110000, FLOAT, 3, c, s);
  results |= ncclRecv(b, 111000, FLOAT, 1, c, s);
  until_idle();
  ncclCommFinalize(c);
  ncclCommDestroy(c);
  printf("{\"results\":%d,\"calls\":%llu}\n", results, (unsigned long long)stub_nccl_calls());
}

static void groups(void) {
  void *c = world(2, 0);
  ncclGroupStart();
  ncclSend(buffer, 200000, FLOAT, 1, c, stub_stream(0));
  ncclGroupStart();
  ncclRecv(buffer, 100000, FLOAT, 1, c, stub_stream(1));
  ncclGroupEnd();
  reduce(c, 50000, 0);
  int before = stub_events_recorded();
  int inner = ncclGroupEnd();
  int after = stub_events_recorded();
  reduce(c, 10000, 0);
  /* Many members, as an all-to-all of sends and receives has. */
  ncclGroupStart();
  for (int i = 0; i < 300; i++) ncclSend(buffer, 10, FLOAT, 1, c, stub_stream(2));
  ncclGroupEnd();
  /* One that launches nothing, and one end too many. */
  ncclGroupStart();
  reduce(c, 77, 0);
  ncclGroupSimulateEnd(NULL);
  int unpaired = ncclGroupEnd();
  until_idle();
  printf("{\"inner\":%d,\"before\":%d,\"events\":%d,\"unpaired\":%d}\n", inner, before, after - before, unpaired);
}

static void communicators(void) {
  void *parent = world(8, 5), *odd = NULL, *even = NULL, *none = parent, *again = NULL, *smaller = NULL, *many = NULL;
  void *all[2], *first = NULL, *second = NULL;
  ncclCommSplit(parent, 1, 5, &odd, NULL);
  ncclCommSplit(parent, 1, 5, &again, NULL);
  ncclCommSplit(parent, -1, 5, &none, NULL);
  int excluded[] = {3, 1};
  ncclCommShrink(parent, excluded, 2, &smaller, NULL, 0);
  UniqueId ids[2] = {unique(8), unique(9)};
  ncclCommInitRankScalable(&many, 16, 7, 2, ids, NULL);
  ncclCommInitAll(all, 2, NULL);
  /* In a group they are handed out at its end. */
  ncclGroupStart();
  ncclCommInitRankConfig(&first, 2, unique(4), 0, NULL);
  ncclCommSplit(parent, 0, 5, &even, NULL);
  ncclCommInitRank(&second, 2, unique(5), 1);
  ncclGroupEnd();
  void *comms[] = {parent, odd, again, smaller, many, all[0], all[1], first, even, second};
  for (int i = 0; i < 10; i++) reduce(comms[i], (size_t)(1000 + i), 0);
  until_idle();
  /* Another communicator at the same address is another one. */
  ncclCommAbort(odd);
  void *reused = world(8, 5);
  for (int tries = 0; reused != odd && tries < 100; tries++) reused = world(8, 5);
  reduce(reused, 2000, 0);
  until_idle();
  printf("{\"none\":%d,\"reused\":%d}\n", none == NULL, reused == odd);
}

/* Not ready yet, then ready; and calls that fail. */
static void results(void) {
  void *slow = NULL;
  stub_nccl_result(7);
  int making = ncclCommInitRankConfig(&slow, 4, unique(3), 1, NULL);
  void *c = NULL;
  int splitting = ncclCommSplit(slow, 0, 0, &c, NULL);
  int running = reduce(slow, 10, 0);
  stub_nccl_result(0);
  reduce(c, 20, 0);
  stub_nccl_result(5);
  int failing = reduce(c, 30, 0);
  ncclGroupStart();
  stub_nccl_result(0);
  reduce(c, 40, 0);
  stub_nccl_result(6);
  int group = ncclGroupEnd();
  stub_nccl_result(0);
  until_idle();
  printf("{\"results\":[%d,%d,%d,%d,%d]}\n", making, splitting, running, failing, group);
}

static void capture(void) {
  void *c = world(2, 0);
  reduce(c, 1000, 0);
  stub_capture(stub_stream(1), 1);
  int before = stub_events_recorded();
  reduce(c, 2000, 1);
  int during = stub_events_recorded() - before;
  /* On another stream meanwhile, with more events than there are: new ones are made. */
  for (int i = 0; i < 200; i++) reduce(c, 500000, 0);
  pause_ms(20);
  stub_capture(stub_stream(1), 0);
  until_idle();
  printf("{\"during\":%d,\"broken\":%d}\n", during, stub_broken_captures());
}

/* More on their way than there are events. */
static void overflow(void) {
  void *c = world(2, 0);
  stub_launch(stub_stream(0), 1500000000);
  for (int i = 0; i < 5000; i++) reduce(c, 1, 0);
  until_idle();
  printf("{\"calls\":%llu}\n", (unsigned long long)stub_nccl_calls());
}

static void driver_fails(const char *when) {
  void *c = world(2, 0);
  for (int i = 0; i < 3; i++) reduce(c, 1000, 0);
  until_idle();
  if (strcmp(when, "between") == 0) reduce(c, 1000000000, 0);
  stub_cuda_result(719);
  int results = 0;
  for (int i = 0; i < 3; i++) results |= reduce(c, 1000, 0);
  stub_cuda_result(0);
  int before = stub_events_recorded();
  for (int i = 0; i < 3; i++) results |= reduce(c, 1000, 0);
  printf("{\"results\":%d,\"later\":%d}\n", results, stub_events_recorded() - before);
}

static void hang(void) {
  void *c = world(2, 0), *other = NULL;
  ncclCommInitRank(&other, 2, unique(2), 0);
  reduce(c, 1000, 0);
  until_idle();
  stub_launch(stub_stream(0), 1000);
  reduce(c, 2000, 0);
  until_idle();
  reduce(c, UINT64_MAX / 4, 0); /* begins, and never ends */
  reduce(c, 3000, 0);           /* never begins */
  for (int i = 0; i < 5; i++) reduce(other, 4000, 1);
  printf("{\"ready\":true}\n");
  fflush(stdout);
  pause_ms(600000);
}

static void forks(void) {
  void *c = world(2, 0);
  reduce(c, 1000, 0);
  until_idle();
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    void *own = world(2, 1);
    int result = reduce(own, 5000, 0);
    result |= reduce(c, 6000, 0);
    exit(result);
  }
  int status = -1;
  waitpid(child, &status, 0);
  reduce(c, 2000, 0);
  until_idle();
  printf("{\"child\":%d,\"status\":%d}\n", (int)child, status);
}

static void trap(const char *grouped) {
  void *c = world(2, 0);
  printf("{\"ready\":true}\n");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (grouped != NULL) ncclGroupStart();
    reduce(c, 10, 0);
    if (grouped != NULL) ncclGroupEnd();
    printf("{\"called\":true}\n");
    fflush(stdout);
  }
}

enum { THREADS = 8, EACH = 2000 };
static void *many_calls(void *number) {
  int i = (int)(intptr_t)number;
  void *c = NULL;
  ncclCommInitRank(&c, THREADS, unique(40 + i), i);
  for (int n = 0; n < EACH; n++) {
    if (n % 10 == 0) ncclGroupStart();
    reduce(c, (size_t)n, i);
    if (n % 10 == 0) ncclSend(buffer, 3, FLOAT, 0, c, stub_stream(8 + i % 4));
    if (n % 10 == 0) ncclGroupEnd();
  }
  ncclCommDestroy(c);
  return NULL;
}
static void threads(void) {
  pthread_t all[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, many_calls, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  until_idle();
  printf("{\"calls\":%llu}\n", (unsigned long long)stub_nccl_calls());
}

/* The thread's context is not the streams'. */
static void contexts(void) {
  static char gpus[2];
  void *c = world(2, 0), *before = NULL, *after = NULL;
  cuCtxGetCurrent(&before);
  for (int i = 0; i < 4; i++) {
    stub_streams_context(&gpus[i % 2]);
    reduce(c, 1000, i % 2);
    until_idle();
  }
  cuCtxGetCurrent(&after);
  stub_lose_context(1);
  reduce(c, 1000, 0);
  stub_lose_context(0);
  reduce(c, 1000, 0);
  until_idle();
  printf("{\"kept\":%d}\n", before == after);
}

/* The profiler plug-in is set up while the first communicator is made, and says so. */
static void beside_plugin(void) {
  _Atomic bool *active = dlsym(RTLD_DEFAULT, "fl_plugin_active");
  if (active == NULL) exit(3);
  *active = true;
  void *c = world(2, 0);
  int result = reduce(c, 1000, 0);
  ncclGroupStart();
  reduce(c, 2000, 0);
  result |= ncclGroupEnd();
  until_idle();
  ncclCommDestroy(c);
  printf("{\"result\":%d}\n", result);
}

int run(int count, char **words);
int run(int count, char **words) {
  const char *name = words[1], *word = count > 2 ? words[2] : NULL;
  if (strcmp(name, "operators") == 0) operators();
  else if (strcmp(name, "groups") == 0) groups();
  else if (strcmp(name, "communicators") == 0) communicators();
  else if (strcmp(name, "results") == 0) results();
  else if (strcmp(name, "capture") == 0) capture();
  else if (strcmp(name, "overflow") == 0) overflow();
  else if (strcmp(name, "driver-fails") == 0) driver_fails(word);
  else if (strcmp(name, "hang") == 0) hang();
  else if (strcmp(name, "forks") == 0) forks();
  else if (strcmp(name, "trap") == 0) trap(word);
  else if (strcmp(name, "threads") == 0) threads();
  else if (strcmp(name, "contexts") == 0) contexts();
  else if (strcmp(name, "beside-plugin") == 0) beside_plugin();
  else if (strcmp(name, "products") == 0) products();
  else if (strcmp(name, "many-products") == 0) many_products();
  else if (strcmp(name, "bench") == 0) bench();
  else return 2;
  return 0;
}
