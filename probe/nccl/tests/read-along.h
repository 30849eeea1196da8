/* A reader in another process, who takes records as RING.md says while they are written. */
#ifndef READ_ALONG_H
#define READ_ALONG_H
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ring.h"

/* Every member of a record follows from `c`, so that a mixture of two records shows. */
static uint64_t count_of(int root) {
  return (uint64_t)root * 0x9e3779b97f4a7c15u >> 8;
}
static bool is_whole(const FlRecord *r) {
  static const uint8_t funcs[] = {1, 3, 5};
  if (r->kind != FL_COLLECTIVE) return false;
  if (r->c < 0 || r->a != count_of(r->c) || r->func != funcs[r->c % 3] || r->dtype != 9) return false;
  /* The upper half is how long its sends were on the wire. */
  if (r->d != 0 && (r->d & 0xffff) != (r->c % 2 == 0 ? 1u | 3u << 8 : 2u | 3u << 8)) return false;
  if (r->b == 0 || r->issuedNs == 0 || (r->startedNs != 0 && r->startedNs < r->issuedNs)) return false;
  /* Kernel events may be over before the reader looks, never the other way round. */
  return r->endedNs == 0 || (r->startedNs != 0 && r->endedNs >= r->startedNs && r->channelsEnded >= r->channels);
}

static const FlHeader *find_ring(size_t *bytes, pid_t pid) {
  const char *folder = getenv("FAULTLINE_DIR");
  char middle[32];
  snprintf(middle, sizeof middle, ".%d.native.ring", (int)pid);
  for (int tries = 0; tries < 20000; tries++) {
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
      if (strstr(entry->d_name, middle) == NULL) continue;
      int at = dirfd(entries), file = openat(at, entry->d_name, O_RDONLY);
      struct stat status;
      if (file < 0 || fstat(file, &status) != 0 || status.st_size < 4096) continue;
      *bytes = (size_t)status.st_size;
      const FlHeader *ring = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0);
      close(file);
      if (ring == MAP_FAILED || memcmp(ring->magic, "FLTRING", 8) != 0) continue;
      closedir(entries);
      return ring;
    }
    if (entries != NULL) closedir(entries);
    usleep(1000);
  }
  return NULL;
}

/* Reads as RING.md says, over and over, until the writer closes its end of the pipe. */
static int read_along(pid_t writer, int until) {
  size_t bytes;
  const FlHeader *ring = find_ring(&bytes, writer);
  if (ring == NULL) return 4;
  unsigned long kept = 0, changing = 0, torn = 0;
  fcntl(until, F_SETFL, O_NONBLOCK);
  char end;
  do {
    const FlRecord *records = (const FlRecord *)((const char *)ring + ring->recordsOffset);
    for (uint32_t i = 0; i < ring->recordCount; i++) {
      FlRecord copy, again;
      if (atomic_load_explicit((_Atomic uint64_t *)&records[i].stamp, memory_order_acquire) == 0) continue;
      memcpy(&copy, (const void *)&records[i], sizeof copy);
      atomic_thread_fence(memory_order_acquire);
      memcpy(&again, (const void *)&records[i], sizeof again);
      atomic_thread_fence(memory_order_acquire);
      uint64_t stamp = atomic_load_explicit(&copy.stamp, memory_order_relaxed);
      if (memcmp(&copy, &again, sizeof copy) != 0 || (stamp & 1) != 0) {
        changing++;
        continue;
      }
      kept++;
      if (is_whole(&copy) && (stamp / 2 - 1) % ring->recordCount == i) continue;
      if (torn++ == 0)
        fprintf(stderr, "torn: slot %u kind %u func %u a %llu b %u c %d d %x channels %u/%u times %llu %llu %llu\n", i,
                copy.kind, copy.func, (unsigned long long)copy.a, copy.b, copy.c, copy.d, copy.channelsEnded, copy.channels,
                (unsigned long long)copy.issuedNs, (unsigned long long)copy.startedNs, (unsigned long long)copy.endedNs);
    }
  } while (read(until, &end, 1) != 0);
  printf("{\"kept\":%lu,\"changing\":%lu,\"torn\":%lu}\n", kept, changing, torn);
  fflush(stdout);
  return torn == 0 && kept > 0 ? 0 : 5;
}

/* Starts the reader; `over` gets what is to be closed when the writer has done. */
static pid_t start_reader(int *over) {
  int ends[2];
  if (pipe(ends) != 0) exit(4);
  pid_t writer = getpid(), reader = fork();
  if (reader == 0) {
    close(ends[1]);
    _exit(read_along(writer, ends[0]));
  }
  close(ends[0]);
  *over = ends[1];
  return reader;
}

static int end_of_reader(pid_t reader, int over) {
  int status;
  close(over);
  waitpid(reader, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

#endif
