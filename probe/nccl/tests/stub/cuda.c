/* Plays libcuda.so.1: streams whose work takes as long as it was said to, by the machine's own clock. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "stub.h"

enum { STREAMS = 64, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, RELAXED = 2 };

typedef struct {
  void *handle, *context;
  uint64_t busyUntil;
  int captured;
} Stream;
typedef struct {
  void *context;
  uint64_t doneAt;
} Event;

int cuEventCreate(Event **event, unsigned flags);
int cuEventQuery(Event *event);
int cuEventElapsedTime(float *ms, Event *start, Event *end);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamGetCtx(void *stream, void **context);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuThreadExchangeStreamCaptureMode(int *mode);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Stream streams[STREAMS];
static int failure, captures, broken, recorded;
static char jobs_context, own_streams[STREAMS];
static int own_count;
static void *streams_context = &jobs_context;
static _Thread_local int mode;
/* NULL in threads that never said: the job's have the job's context, and only they work without. */
static _Thread_local void *current;
static _Thread_local int lost;

uint64_t stub_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Behind the lock. */
static Stream *find(void *handle) {
  for (int i = 0; i < STREAMS; i++) {
    if (streams[i].handle == NULL) streams[i] = (Stream){handle, streams_context, 0, 0};
    if (streams[i].handle == handle) return &streams[i];
  }
  abort();
}

#define LOCKED(...)          \
  pthread_mutex_lock(&lock); \
  __VA_ARGS__                \
  pthread_mutex_unlock(&lock)

void stub_launch(void *stream, uint64_t ns) {
  LOCKED({
    Stream *at = find(stream);
    if (!at->captured) at->busyUntil = later(at->busyUntil, stub_now()) + ns;
  });
}
void stub_cuda_result(int result) {
  LOCKED(failure = result;);
}
void stub_capture(void *stream, int captured) {
  LOCKED(find(stream)->captured = captured; captures += captured ? 1 : -1;);
}
int stub_broken_captures(void) {
  LOCKED(int result = broken;);
  return result;
}
int stub_events_recorded(void) {
  LOCKED(int result = recorded;);
  return result;
}
int stub_idle(void) {
  int idle = 1;
  LOCKED(for (int i = 0; i < STREAMS; i++) idle &= streams[i].busyUntil <= stub_now(););
  return idle;
}
void stub_streams_context(void *context) {
  LOCKED(streams_context = context;);
}

void stub_lose_context(int isLost) {
  lost = isLost;
}

/* Counts what CUDA would have answered by ending somebody's capture. */
static int answer(void) {
  if (captures > 0 && mode != RELAXED) broken++;
  return failure;
}

int cuEventCreate(Event **event, unsigned flags) {
  *event = calloc(1, sizeof **event);
  cuCtxGetCurrent(&(*event)->context);
  LOCKED(int result = answer(););
  return result;
}
int cuEventRecord(void *event, void *stream) {
  Event *at = event;
  LOCKED({
    Stream *on = find(stream);
    broken += on->captured;
    recorded++;
    at->doneAt = later(on->busyUntil, stub_now());
  } int result = failure != 0 ? failure : at->context == find(stream)->context ? 0 : INVALID_HANDLE;);
  return result;
}
int cuEventQuery(Event *event) {
  LOCKED(int result = answer(); int done = event->doneAt <= stub_now(););
  if (result == 0 && current != event->context) result = INVALID_CONTEXT;
  return result != 0 ? result : done ? 0 : NOT_READY;
}
int cuEventElapsedTime(float *ms, Event *start, Event *end) {
  LOCKED({
    *ms = (float)((double)((int64_t)end->doneAt - (int64_t)start->doneAt) / 1e6);
  } int result = answer(););
  if (result == 0 && start->context != end->context) result = INVALID_HANDLE;
  return result != 0 ? result : later(start->doneAt, end->doneAt) > stub_now() ? NOT_READY : 0;
}
int cuStreamCreate(void **stream, unsigned flags) {
  LOCKED({
    *stream = &own_streams[own_count++];
    find(*stream)->context = current;
  } int result = answer(););
  return result;
}
int cuStreamIsCapturing(void *stream, int *status) {
  LOCKED(*status = find(stream)->captured; int result = lost ? INVALID_CONTEXT : failure;);
  return result;
}
int cuStreamGetCtx(void *stream, void **context) {
  LOCKED(*context = find(stream)->context; int result = failure;);
  return result;
}
int cuCtxGetCurrent(void **context) {
  *context = current == NULL ? &jobs_context : current;
  LOCKED(int result = failure;);
  return result;
}
int cuCtxSetCurrent(void *context) {
  current = context;
  LOCKED(int result = failure;);
  return result;
}
int cuThreadExchangeStreamCaptureMode(int *wanted) {
  int before = mode;
  mode = *wanted;
  *wanted = before;
  return 0;
}
