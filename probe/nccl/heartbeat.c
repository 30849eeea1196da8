/* A thread that says once a second that the process still gets time, and what both clocks say then. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "within.h"

enum { STACK = 256 * 1024, TOUCH_EVERY = 3600 };

typedef struct {
  FlHeader *ring;
  const char *path;
} Beat;

/* One a process: a fork's child starts its own, and the parent's thread is not in it. */
static Beat beat;

static void *run(void *argument) {
  const Beat *mine = argument;
  fl_own_thread(FL_HEARTBEAT, true);
  for (unsigned seconds = 0; !fl_alone(); seconds++) {
    atomic_store_explicit(&mine->ring->anchorRealtimeNs, fl_realtime(), memory_order_relaxed);
    uint64_t now = fl_now();
    atomic_store_explicit(&mine->ring->anchorMonotonicNs, now, memory_order_relaxed);
    atomic_store_explicit(&mine->ring->heartbeatNs, now, memory_order_relaxed);
    fl_mask_follow(mine->ring);
    /* Stores through a mapping do not change a file's time, by which others judge whether it may be removed. */
    if (seconds % TOUCH_EVERY == TOUCH_EVERY - 1) utimensat(AT_FDCWD, mine->path, NULL, AT_SYMLINK_NOFOLLOW);
    struct timespec second = {.tv_sec = 1};
    nanosleep(&second, NULL);
  }
  fl_own_thread(FL_HEARTBEAT, false);
  return NULL;
}

void fl_heartbeat_start(FlHeader *ring, const char *path) {
  beat = (Beat){ring, path};
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS); /* A fault where it is blocked kills past every handler (guard.c). */
  /* A new thread takes over the mask: no signal of the job's is ever delivered to this one. */
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Thread-local data of big libraries lies on the stack as well: where they leave no room, take the usual size. */
    bool small = pthread_attr_setstacksize(&attributes, STACK) == 0;
    int failed = pthread_create(&thread, &attributes, run, &beat);
    if (failed != 0 && small) {
      pthread_attr_t usual;
      if (pthread_attr_init(&usual) == 0) {
        pthread_attr_setdetachstate(&usual, PTHREAD_CREATE_DETACHED);
        pthread_create(&thread, &usual, run, &beat);
        pthread_attr_destroy(&usual);
      }
    }
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
