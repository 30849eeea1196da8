/* A main thread may leave by pthread_exit and let others finish. Without us the process ends with the last of them: threads
 * of ours that live on must not keep it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "within.h"

static _Atomic int ours[FL_OWN_THREADS];

void fl_own_thread(FlOwnThread which, bool isThere) {
  atomic_store(&ours[which], isThere ? (int)syscall(SYS_gettid) : 0);
}

static bool main_has_left(void) {
  char name[48], text[512];
  snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)getpid());
  int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return false;
  text[got] = '\0';
  const char *state = strrchr(text, ')');
  return state != NULL && state[1] == ' ' && state[2] == 'Z';
}

static bool is_own(long thread) {
  for (int i = 0; i < FL_OWN_THREADS; i++)
    if (thread == atomic_load(&ours[i])) return true;
  return false;
}

bool fl_alone(void) {
  if (!main_has_left()) return false;
  DIR *threads = opendir("/proc/self/task");
  if (threads == NULL) return false;
  bool alone = true;
  const struct dirent *entry;
  while (alone && (entry = readdir(threads)) != NULL) {
    long thread = strtol(entry->d_name, NULL, 10); /* 0: the folder itself, and the one above */
    alone = thread == 0 || thread == getpid() || is_own(thread);
  }
  closedir(threads);
  return alone;
}
