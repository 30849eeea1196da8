/* The thread that looks at events and writes the times into the records.
 *
 * It only ever asks whether an event is over; it never waits for the GPU. Streams are looked at one by one, because one that
 * hangs must not hide what the others finish. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "cuda.h"
#include "within.h"

enum { LANES = 64, IDLE_NS = 5000000, BUSY_NS = 1000000, LOOKS_OF_A_SECOND = 200, EXIT_MS = 500 };
/* The timings of one stream, oldest first. The last lane takes the streams that find no lane of their own. */
typedef struct {
  void *stream;
  FlContext *context;
  FlTiming *first, *last;
} Lane;
static Lane lanes[LANES];
static void *current_context;
static _Atomic bool stopping, stopped;
static bool exists; /* behind cuda.c's lock */

static Lane *lane_of(const FlTiming *timing) {
  Lane *empty = NULL;
  for (int i = 0; i < LANES - 1; i++) {
    if (lanes[i].first == NULL) empty = empty == NULL ? &lanes[i] : empty;
    else if (lanes[i].stream == timing->stream && lanes[i].context == timing->context) return &lanes[i];
  }
  return empty == NULL ? &lanes[LANES - 1] : empty;
}

static bool take_in(void) {
  bool any = false;
  for (FlTiming *timing; (timing = fl_queue_take(&fl_submitted)) != NULL; any = true) {
    Lane *lane = lane_of(timing);
    if (lane->first == NULL) lane->first = timing;
    else lane->last->next = timing;
    lane->last = timing;
    lane->stream = timing->stream;
    lane->context = timing->context;
  }
  return any;
}

static bool enter(FlContext *context) {
  void *handle = atomic_load_explicit(&context->handle, memory_order_relaxed);
  if (current_context == handle) return true;
  if (fl_driver.contextSet(handle) != FL_CUDA_SUCCESS) return false;
  current_context = handle;
  return true;
}

static void write_times(const FlTiming *timing, uint64_t endedNs, uint8_t flags) {
  for (uint32_t i = 0; i < timing->count; i++) {
    uint64_t ticket = timing->tickets == NULL ? timing->ticket : timing->tickets[i];
    FlRecord *record = fl_open(timing->ring, ticket);
    if (record == NULL) continue;
    /* The members of a group were called one after the other. */
    bool isEarly = timing->startedNs < record->issuedNs;
    if (timing->startedNs != 0) record->startedNs = isEarly ? record->issuedNs : timing->startedNs;
    record->endedNs = endedNs;
    record->flags |= flags;
    fl_close(record, ticket);
  }
}

static bool write_start(FlTiming *timing) {
  return fl_event_time(timing, timing->start, timing->issuedNs, &timing->startedNs);
}

static bool write_end(FlTiming *timing) {
  int64_t took;
  uint64_t endedNs;
  if (timing->startedNs == 0 && !write_start(timing)) return false;
  if (!fl_elapsed_ns(timing->start, timing->end, &took)) return false;
  /* Short ones by their own events, which no anchor's error touches. */
  if (took < 1000000000) endedNs = timing->startedNs + (took < 0 ? 0 : (uint64_t)took);
  else if (!fl_event_time(timing, timing->end, timing->startedNs, &endedNs)) return false;
  write_times(timing, endedNs, FL_GPU_START | FL_GPU_END);
  return true;
}

/* Goes down the lane as far as the GPU has come; false where the driver fails. */
static bool advance(Lane *lane) {
  while (lane->first != NULL) {
    FlTiming *timing = lane->first;
    int anchored = enter(timing->context) ? fl_anchor_keep(timing->context) : -1;
    if (anchored <= 0) return anchored == 0;
    int over = fl_event_over(timing->end);
    if (over < 0) return false;
    if (over == 0) {
      int begun = timing->startedNs == 0 ? fl_event_over(timing->start) : 0;
      if (begun < 0) return false;
      if (begun > 0) {
        if (!write_start(timing)) return false;
        write_times(timing, 0, FL_GPU_START);
      }
      return true;
    }
    if (!write_end(timing)) return false;
    lane->first = timing->next;
    fl_timing_give_back(timing);
  }
  return true;
}

/* What will never be timed says so, or it would look like an operator that goes on. */
static void leave_untimed(void) {
  take_in();
  for (int i = 0; i < LANES; i++)
    for (FlTiming *timing = lanes[i].first; timing != NULL; timing = timing->next) write_times(timing, 0, FL_UNTIMED);
}

static void *run(void *unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "faultline-gpu");
  /* In the mode that threads have by default, asking for an event would break a graph that another thread captures. */
  fl_relax_capture(FL_RELAXED);
  fl_own_thread(FL_RESOLVER, true);
  unsigned looks = 0;
  for (bool last = false; !last;) {
    last = atomic_load(&stopping) || (++looks % LOOKS_OF_A_SECOND == 0 && fl_alone());
    take_in();
    bool busy = false, works = !fl_timing_stopped();
    for (int i = 0; i < LANES && works; i++) {
      works = advance(&lanes[i]);
      busy |= lanes[i].first != NULL;
    }
    if (!works) {
      fl_timing_stop();
      leave_untimed();
      /* Whoever was between its two events hands them in late. */
      for (int i = 0; i < LANES; i++) lanes[i].first = NULL;
    }
    struct timespec pause = {.tv_nsec = busy ? BUSY_NS : IDLE_NS};
    if (!last) nanosleep(&pause, NULL);
  }
  fl_own_thread(FL_RESOLVER, false);
  atomic_store(&stopped, true);
  return NULL;
}

/* Runs before the driver's own handlers, which were there first: after them, asking for an event may crash. */
static void at_exit(void) {
  atomic_store(&stopping, true);
  for (int ms = 0; ms < EXIT_MS && !atomic_load(&stopped); ms++) {
    struct timespec step = {.tv_nsec = 1000000};
    nanosleep(&step, NULL);
  }
}

/* Threads do not follow into a fork's child; its exit must not wait for one. */
void fl_resolver_after_fork(void) {
  fl_own_thread(FL_RESOLVER, false);
  exists = false;
  atomic_store(&stopped, true);
}

bool fl_resolver_start(void) {
  if (exists) return true;
  atomic_store(&stopped, false);
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS); /* guard.c */
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    exists = pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (exists) atexit(at_exit);
  else fl_timing_stop();
  return exists;
}
