/* ncclGroupStart and ncclGroupEnd: what is called between them starts together at the outermost end, so that end is where
 * it is timed: one pair of events for each stream, for all the records on it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "shim.h"

enum { MOST_MEMBERS = 65536, MOST_BIRTHS = 4096 };

static _Thread_local FlThread this_thread;
static pthread_key_t key;
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_thread(void *pointer) {
  FlThread *thread = pointer;
  free(thread->member);
  free(thread->birth);
  *thread = (FlThread){0};
}

static void make_key(void) {
  has_key = pthread_key_create(&key, free_thread) == 0;
}

FlThread *fl_thread(void) {
  return &this_thread;
}

/* Room for one more; false where there is none. */
static bool grow(FlThread *thread, void **array, uint32_t *capacity, uint32_t count, uint32_t most, size_t bytes) {
  if (count < *capacity) return true;
  if (count >= most) return false;
  if (!thread->keyed) {
    pthread_once(&once, make_key);
    if (!has_key || pthread_setspecific(key, thread) != 0) return false;
    thread->keyed = true;
  }
  uint32_t wanted = count < 32 ? 32 : count * 2;
  void *bigger = realloc(*array, wanted * bytes);
  if (bigger == NULL) return false;
  *array = bigger;
  *capacity = wanted;
  return true;
}

static uint32_t stream_index(FlThread *thread, void *stream) {
  for (uint32_t i = 0; i < thread->streams; i++)
    if (thread->stream[i] == stream) return i;
  if (thread->streams == FL_GROUP_STREAMS) return FL_GROUP_STREAMS;
  thread->stream[thread->streams] = stream;
  return thread->streams++;
}

bool fl_group_add(FlThread *thread, uint64_t ticket, uint64_t issuedNs, void *stream) {
  void *array = thread->member;
  if (!grow(thread, &array, &thread->memberCapacity, thread->members, MOST_MEMBERS, sizeof *thread->member)) return false;
  thread->member = array;
  if (thread->members == 0) thread->issuedNs = issuedNs;
  thread->member[thread->members++] = (FlMember){ticket, stream_index(thread, stream)};
  return true;
}

static void born(const FlBirth *birth, int result) {
  /* The profiler plug-in is set up while the first communicator is made, and registers them itself from then on. */
  if (result != FL_NCCL_SUCCESS && result != FL_NCCL_IN_PROGRESS) return;
  if (!fl_shim_records()) return;
  fl_comm_made(*birth->comm, birth->id, birth->rank, birth->size, result == FL_NCCL_SUCCESS);
  if (fl_ring() != NULL) fl_timing_prepare();
}

void fl_group_birth(FlThread *thread, const FlBirth *birth, int result) {
  if (birth->comm == NULL) return;
  if (thread->depth == 0) {
    born(birth, result);
    return;
  }
  void *array = thread->birth;
  if (result != FL_NCCL_SUCCESS && result != FL_NCCL_IN_PROGRESS) return;
  if (!grow(thread, &array, &thread->birthCapacity, thread->births, MOST_BIRTHS, sizeof *thread->birth)) return;
  thread->birth = array;
  thread->birth[thread->births++] = *birth;
}

int fl_group_start(int (*real)(void), FlThread *thread) {
  if (thread->depth == 0) {
    /* The only place where a group may be held: inside of it, peers may wait for calls that are already out. */
    FlHeader *ring = fl_settings()->isOff ? NULL : fl_ring();
    thread->held = ring != NULL && fl_trap(ring);
    thread->members = thread->streams = thread->births = 0;
  }
  thread->inside++;
  int result = real();
  thread->inside--;
  if (result == FL_NCCL_SUCCESS) thread->depth++;
  return result;
}

typedef struct {
  FlTiming *timing[FL_GROUP_STREAMS + 1];
  uint8_t flags[FL_GROUP_STREAMS + 1];
} Timings;

static void start_timings(FlThread *thread, Timings *timings, bool simulated) {
  for (uint32_t i = 0; i <= thread->streams && i <= FL_GROUP_STREAMS; i++) {
    timings->timing[i] = NULL;
    bool isTimed = i < thread->streams && !simulated;
    timings->flags[i] = isTimed ? 0 : FL_UNTIMED;
    if (isTimed) timings->timing[i] = fl_timing_begin(thread->stream[i], &timings->flags[i]);
  }
}

/* Writes what is known now into every record, then hands the events over: nobody else changes the records before. */
static void end_timings(FlThread *thread, FlHeader *ring, Timings *timings, int result, uint64_t tookNs) {
  for (uint32_t i = 0; i < thread->streams; i++)
    timings->flags[i] |= fl_timing_end(&timings->timing[i], result == FL_NCCL_SUCCESS);
  for (uint32_t i = 0; i < thread->members; i++) {
    FlRecord *record = fl_open(ring, thread->member[i].ticket);
    if (record == NULL) continue;
    record->flags |= timings->flags[thread->member[i].stream];
    if (result != FL_NCCL_SUCCESS && result != FL_NCCL_IN_PROGRESS) record->flags |= FL_FAILED;
    record->e = tookNs > UINT32_MAX ? UINT32_MAX : (uint32_t)tookNs;
    fl_close(record, thread->member[i].ticket);
  }
  for (uint32_t i = 0; i < thread->streams; i++)
    if (timings->timing[i] != NULL)
      fl_timing_submit(timings->timing[i], ring, thread->member, thread->members, i, thread->issuedNs);
}

int fl_group_end(int (*real)(void *), void *argument, FlThread *thread, bool simulated) {
  bool outermost = thread->depth == 1;
  FlHeader *ring = outermost && thread->members > 0 ? fl_ring() : NULL;
  Timings timings;
  if (ring != NULL) start_timings(thread, &timings, simulated);
  uint64_t began = ring != NULL ? fl_now() : 0;
  thread->inside++;
  int result = real(argument);
  thread->inside--;
  /* An end too many is the job's error, and the library's to report. */
  if (thread->depth > 0) thread->depth--;
  if (ring != NULL) end_timings(thread, ring, &timings, result, fl_now() - began);
  if (outermost) {
    for (uint32_t i = 0; i < thread->births; i++) born(&thread->birth[i], result);
    thread->members = thread->streams = thread->births = 0;
    thread->held = false;
  }
  return result;
}
