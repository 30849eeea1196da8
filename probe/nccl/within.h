/* What the files of the ring know of each other and nobody else needs. */
#ifndef FAULTLINE_WITHIN_H
#define FAULTLINE_WITHIN_H
#include <limits.h>
#include <stddef.h>
#include "ring.h"

/* create.c: makes the file and maps it; NULL and a reason where it cannot. `path` gets the file's whole path. */
FlHeader *fl_create(char path[PATH_MAX], const char **reason);

/* create.c: start time of a process in ticks (/proc/<pid>/stat, field 22); 0 where it is gone. */
uint64_t fl_start_ticks(int pid);

/* sweep.c: removes what dead processes of the same job and rank left more than a day ago. `folder` is an open folder. */
void fl_sweep(int folder, const char *prefix);

/* settings.c: an environment variable that is a number within bounds, else `otherwise`. */
long fl_number(const char *name, long least, long most, long otherwise);
/* settings.c: the first of the variables, up to a NULL, that is a number; -1 where none is. */
int32_t fl_first_number(const char *const *names);

/* heartbeat.c: starts the thread that refreshes the ring's clocks. `path` is touched now and then. */
void fl_heartbeat_start(FlHeader *ring, const char *path);
/* Hands the mask that the agent wants on to NCCL, where the plug-in runs. */
void fl_mask_follow(FlHeader *ring);

/* guard.c: a SIGBUS in this ring, because its file was truncated, does no harm from now on. `isOverOurs`: the handler that
 * there is was put there for us, though it is not of this library. */
void fl_guard(void *ring, size_t bytes, bool isOverOurs);

/* alone.c: a thread of ours says that it begins or ends; whether the main thread and all of the job's have left. */
typedef enum { FL_HEARTBEAT, FL_RESOLVER, FL_OWN_THREADS } FlOwnThread;
void fl_own_thread(FlOwnThread which, bool isThere);
bool fl_alone(void);

/* end.c: notes from now on how the process ends. */
void fl_watch_end(void);

/* ring.c: the ring that exists already, or NULL; never makes one, safe in a signal handler. */
extern _Atomic(FlHeader *) fl_current_ring;
static inline FlHeader *fl_existing_ring(void) {
  return atomic_load_explicit(&fl_current_ring, memory_order_acquire);
}

/* tables.c: around a fork, and in the child, whose ring is another. */
void fl_tables_lock(void);
void fl_tables_unlock(void);
void fl_tables_forget(void);

/* clock.c */
uint64_t fl_realtime(void);
uint64_t fl_now_coarse(void); /* CLOCK_MONOTONIC as of the last tick: some ms behind, a fifth of the price */

static inline FlRecord *fl_slot(FlHeader *ring, uint64_t ticket) {
  /* 0 where the file was truncated under us: then all go to one place, within the mapping. */
  uint32_t count = ring->recordCount;
  return (FlRecord *)((char *)ring + FL_RECORDS_AT) + (ticket & (count - (count != 0)));
}
static inline char *fl_words_of(FlHeader *ring) {
  return (char *)ring + FL_WORDS_AT;
}

#endif
