/* Events on the job's streams, through the driver that the job has loaded. */
#include "cuda.h"
#include <pthread.h>
#include "shim.h"

enum { CONTEXTS = 16 };
static FlContext contexts[CONTEXTS];
FlQueue fl_submitted;

enum { UNTRIED, READY, STOPPED };
static _Atomic int state;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static uint32_t made;

void fl_timing_stop(void) {
  atomic_store_explicit(&state, STOPPED, memory_order_release);
}

bool fl_timing_stopped(void) {
  return atomic_load_explicit(&state, memory_order_acquire) == STOPPED;
}

static bool __attribute__((noinline)) get_ready(void) {
  pthread_mutex_lock(&making);
  if (atomic_load(&state) == UNTRIED) {
    bool ready = fl_settings()->withEvents && fl_driver_find() && fl_queue_make(&fl_submitted, FL_MOST_TIMINGS);
    atomic_store(&state, ready ? READY : STOPPED);
  }
  pthread_mutex_unlock(&making);
  return atomic_load(&state) == READY;
}

/* A fork's child can use CUDA only where its parent had not: what we made of the parent's is then useless for good. */
void fl_timing_after_fork(void) {
  pthread_mutex_init(&making, NULL);
  fl_resolver_after_fork();
  if (atomic_load(&state) == READY) fl_timing_stop();
}

/* Behind the lock. */
static FlContext *add_context(void *handle) {
  for (int i = 0; i < CONTEXTS; i++) {
    FlContext *context = &contexts[i];
    void *there = atomic_load_explicit(&context->handle, memory_order_relaxed);
    if (there == handle) return context;
    if (there != NULL) continue;
    if (!fl_queue_make(&context->idle, FL_MOST_TIMINGS)) return NULL;
    atomic_store_explicit(&context->handle, handle, memory_order_release);
    return context;
  }
  return NULL;
}

static FlContext *find_context(void *handle) {
  if (handle == NULL) return NULL;
  for (int i = 0; i < CONTEXTS; i++) {
    void *there = atomic_load_explicit(&contexts[i].handle, memory_order_acquire);
    if (there == handle) return &contexts[i];
    if (there == NULL) break;
  }
  pthread_mutex_lock(&making);
  FlContext *context = add_context(handle);
  pthread_mutex_unlock(&making);
  return context;
}

/* Whether the driver did it. A thread that has no context yet has broken nothing; anything else is the end of timing. */
static bool went_well(int result) {
  if (result != FL_CUDA_SUCCESS && result != FL_CUDA_NO_CONTEXT) fl_timing_stop();
  return result == FL_CUDA_SUCCESS;
}

static FlContext *context_of(void *stream) {
  void *handle = NULL;
  int result = fl_driver.streamContext != NULL ? fl_driver.streamContext(stream, &handle) : fl_driver.contextGet(&handle);
  return went_well(result) ? find_context(handle) : NULL;
}

enum { CHUNK = 64 };

static void fill(FlContext *context, FlTiming *pairs) {
  for (int i = 0; i < CHUNK; i++) {
    pairs[i].context = context;
    if (fl_driver.eventCreate(&pairs[i].start, 0) != FL_CUDA_SUCCESS ||
        fl_driver.eventCreate(&pairs[i].end, 0) != FL_CUDA_SUCCESS) {
      fl_timing_stop();
      return;
    }
    fl_queue_put(&context->idle, &pairs[i]);
  }
}

/* CHUNK more pairs, which will be used again and again, in the thread that needs the first. Events belong to the context
 * that is the thread's when they are made, and that need not be the stream's. */
static void make_pairs(FlContext *context) {
  void *handle = atomic_load_explicit(&context->handle, memory_order_relaxed), *current = NULL;
  pthread_mutex_lock(&making);
  FlTiming *pairs = made < FL_MOST_TIMINGS && fl_resolver_start() ? calloc(CHUNK, sizeof *pairs) : NULL;
  if (pairs != NULL) {
    made += CHUNK;
    int before = fl_relax_capture(FL_RELAXED);
    if (fl_driver.contextGet(&current) != FL_CUDA_SUCCESS) fl_timing_stop();
    else if (current == handle) fill(context, pairs);
    else if (fl_driver.contextSet(handle) != FL_CUDA_SUCCESS) fl_timing_stop();
    else {
      fill(context, pairs);
      if (fl_driver.contextSet(current) != FL_CUDA_SUCCESS) fl_timing_stop();
    }
    fl_relax_capture(before);
  }
  pthread_mutex_unlock(&making);
}

static bool is_ready(void) {
  int now = atomic_load_explicit(&state, memory_order_acquire);
  return now == READY || (now == UNTRIED && get_ready());
}

void fl_timing_prepare(void) {
  void *handle = NULL;
  if (!is_ready() || fl_driver.contextGet(&handle) != FL_CUDA_SUCCESS) return;
  FlContext *context = find_context(handle);
  FlTiming *timing = context == NULL ? NULL : fl_queue_take(&context->idle);
  if (timing != NULL) fl_timing_give_back(timing);
  else if (context != NULL) make_pairs(context);
}

void fl_timing_give_back(FlTiming *timing) {
  free(timing->tickets);
  timing->tickets = NULL;
  fl_queue_put(&timing->context->idle, timing);
}

static FlTiming *take(void *stream, uint8_t *flags) {
  if (!is_ready()) return NULL;
  int status = 0;
  int result = fl_driver.streamIsCapturing(stream, &status);
  /* Asking after the legacy stream while another is captured is answered with an error that hurts nobody. */
  if (status != 0 || (result >= FL_CAPTURE_FIRST && result <= FL_CAPTURE_LAST)) {
    *flags |= FL_CAPTURED;
    return NULL;
  }
  FlContext *context = went_well(result) ? context_of(stream) : NULL;
  if (context == NULL) return NULL;
  FlTiming *timing = fl_queue_take(&context->idle);
  if (timing == NULL) {
    make_pairs(context);
    timing = fl_queue_take(&context->idle);
  }
  return timing;
}

FlTiming *fl_timing_begin(void *stream, uint8_t *flags) {
  FlTiming *timing = take(stream, flags);
  if (timing != NULL && !went_well(fl_driver.eventRecord(timing->start, stream))) {
    fl_timing_give_back(timing);
    timing = NULL;
  }
  if (timing == NULL) *flags |= FL_UNTIMED;
  else timing->stream = stream;
  return timing;
}

uint8_t fl_timing_end(FlTiming **timing, bool launched) {
  if (*timing == NULL) return 0;
  if (launched && went_well(fl_driver.eventRecord((*timing)->end, (*timing)->stream))) return 0;
  fl_timing_give_back(*timing);
  *timing = NULL;
  return FL_UNTIMED;
}

static void submit(FlTiming *timing, FlHeader *ring, uint64_t issuedNs) {
  timing->ring = ring;
  timing->issuedNs = issuedNs;
  timing->startedNs = 0;
  timing->next = NULL;
  /* There is a place for every pair that exists. */
  fl_queue_put(&fl_submitted, timing);
}

void fl_timing_submit_one(FlTiming *timing, FlHeader *ring, uint64_t ticket, uint64_t issuedNs) {
  timing->ticket = ticket;
  timing->count = 1;
  submit(timing, ring, issuedNs);
}

void fl_timing_submit(FlTiming *timing, FlHeader *ring, const FlMember *members, uint32_t count, uint32_t stream,
                      uint64_t issuedNs) {
  timing->count = 0;
  for (uint32_t i = 0; i < count; i++) timing->count += members[i].stream == stream;
  if (timing->count > 1) timing->tickets = malloc(timing->count * sizeof *timing->tickets);
  /* Out of memory: the first one stands for the others. */
  uint32_t room = timing->count > 1 && timing->tickets == NULL ? 1 : timing->count;
  timing->count = 0;
  for (uint32_t i = 0; i < count && timing->count < room; i++) {
    if (members[i].stream != stream) continue;
    if (timing->tickets != NULL) timing->tickets[timing->count] = members[i].ticket;
    else timing->ticket = members[i].ticket;
    timing->count++;
  }
  submit(timing, ring, issuedNs);
}
