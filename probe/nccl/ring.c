/* Records: taking a ticket, writing, changing in place (RING.md, "Record"); and the one ring of a process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "within.h"

_Atomic(FlHeader *) fl_current_ring;
/* Switched off, or it could not be made: nobody tries again. */
static _Atomic bool given_up;
static bool watches_forks;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static char path[PATH_MAX];

/* Whoever forks holds all our locks while it does, so that none is left locked in the child. */
static void before_fork(void) {
  pthread_mutex_lock(&making);
  fl_tables_lock();
}

static void after_fork_in_parent(void) {
  fl_tables_unlock();
  pthread_mutex_unlock(&making);
}

/* The parent's ring is the parent's. In its place the child gets a private copy of it, in case somebody still holds the
 * pointer: better than a fault, and better than writing into the parent's. */
static void let_go(FlHeader *ring) {
  size_t bytes = FL_RECORDS_AT + (size_t)ring->recordCount * sizeof(FlRecord);
  int error = errno;
  int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file >= 0) {
    if (fstat(file, &status) == 0 && status.st_size >= (off_t)bytes)
      mmap(ring, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
    close(file);
  }
  errno = error;
}

static void after_fork_in_child(void) {
  FlHeader *ring = atomic_exchange(&fl_current_ring, NULL);
  if (ring != NULL) let_go(ring);
  fl_tables_forget();
  fl_tables_unlock();
  pthread_mutex_unlock(&making);
}

static void say_why_not(const char *reason) {
  char line[PATH_MAX + 256];
  int length = snprintf(line, sizeof line, "faultline: %s: %s; the job goes on without the probe\n", path[0] ? path : "no ring",
                        reason);
  if (length < 0) return;
  if ((size_t)length >= sizeof line) length = sizeof line - 1;
  /* One write, so that lines of many ranks do not mix. */
  if (write(STDERR_FILENO, line, (size_t)length) < 0) return;
}

static FlHeader *make(void) {
  const char *switched = getenv("FAULTLINE");
  if (switched != NULL && strcmp(switched, "0") == 0) {
    atomic_store(&given_up, true);
    return NULL;
  }
  const char *reason = NULL;
  FlHeader *ring = fl_create(path, &reason);
  if (ring == NULL) {
    atomic_store(&given_up, true);
    say_why_not(reason);
    return NULL;
  }
  if (!watches_forks) watches_forks = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  atomic_store_explicit(&fl_current_ring, ring, memory_order_release);
  fl_heartbeat_start(ring, path);
  fl_watch_end();
  fl_guard(ring, FL_RECORDS_AT + (size_t)ring->recordCount * sizeof(FlRecord), false);
  return ring;
}

FlHeader *fl_ring(void) {
  FlHeader *ring = fl_existing_ring();
  if (ring != NULL) return ring;
  if (atomic_load_explicit(&given_up, memory_order_relaxed)) return NULL;
  int error = errno;
  pthread_mutex_lock(&making);
  ring = fl_existing_ring();
  if (ring == NULL && !atomic_load(&given_up)) ring = make();
  pthread_mutex_unlock(&making);
  errno = error;
  return ring;
}

/* A seqlock's writer: the odd stamp is seen before anything that is written under it. The exchange alone does not say so on
 * arm64, whose later stores may overtake the store half of an atomic exchange. For readers in other processes: the writers
 * of this one are ordered by the stamp itself. */
static inline void odd_before_content(void) {
  atomic_thread_fence(memory_order_release);
}

uint64_t fl_append(FlHeader *ring, const FlRecord *record) {
  uint64_t ticket = atomic_fetch_add_explicit(&ring->head, 1, memory_order_relaxed);
  uint64_t stamp = (ticket + 1) * 2;
  FlRecord *slot = fl_slot(ring, ticket);
  __builtin_prefetch(fl_slot(ring, ticket + 2), 1); /* a slot that was last touched a lap ago is in no cache */
  uint64_t seen = atomic_load_explicit(&slot->stamp, memory_order_relaxed);
  /* Odd: somebody is in it. Above ours: we slept a whole lap and the slot is already a later record's. */
  if ((seen & 1) != 0 || seen > stamp ||
      !atomic_compare_exchange_strong_explicit(&slot->stamp, &seen, stamp | 1, memory_order_acquire, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
    return UINT64_MAX;
  }
  odd_before_content();
  memcpy((char *)slot + sizeof slot->stamp, (const char *)record + sizeof slot->stamp, sizeof *slot - sizeof slot->stamp);
  atomic_store_explicit(&slot->stamp, stamp, memory_order_release);
  return ticket;
}

/* Two threads may change one record at once (an operator's end, its last channel's). Each is in it for a few stores, so the
 * other spins. One that was preempted in there is waited for, because a change that is lost may be the operator's end; but
 * not for ever: it may have been cancelled. */
enum { SPINS = 64, YIELDS = 320, TRIES = 1320, NAP_NS = 100000 };

static void wait_for_other(int tries) {
  if (tries < SPINS) return;
  if (tries < YIELDS) {
    sched_yield();
    return;
  }
  int error = errno;
  struct timespec nap = {.tv_nsec = NAP_NS};
  nanosleep(&nap, NULL);
  errno = error;
}

FlRecord *fl_open(FlHeader *ring, uint64_t ticket) {
  if (ticket == UINT64_MAX) return NULL;
  uint64_t stamp = (ticket + 1) * 2;
  FlRecord *slot = fl_slot(ring, ticket);
  for (int tries = 0; tries < TRIES; tries++) {
    uint64_t seen = stamp;
    if (atomic_compare_exchange_strong_explicit(&slot->stamp, &seen, stamp | 1, memory_order_acquire,
                                                memory_order_relaxed)) {
      odd_before_content();
      return slot;
    }
    if (seen != (stamp | 1)) break;
    wait_for_other(tries);
  }
  atomic_fetch_add_explicit(&ring->lateUpdates, 1, memory_order_relaxed);
  return NULL;
}

void fl_close(FlRecord *record, uint64_t ticket) {
  atomic_store_explicit(&record->stamp, (ticket + 1) * 2, memory_order_release);
}
