/* Takes away what dead processes of the same job and rank left, once nobody can still want it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "within.h"

static const uint64_t DAY_NS = 86400ull * 1000000000u;

/* The ring's own anchor counts as a touch: stores through a mapping do not change the file's time. */
static bool read_header(int folder, const char *name, FlHeader *header) {
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  ssize_t got = pread(file, header, sizeof *header, 0);
  close(file);
  return got == (ssize_t)sizeof *header && memcmp(header->magic, "FLTRING", 8) == 0;
}

static bool is_left_over(int folder, const char *name, int pid, uint64_t now) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return false;
  uint64_t touched = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
  FlHeader header;
  bool isRing = read_header(folder, name, &header);
  if (isRing && atomic_load(&header.anchorRealtimeNs) > touched) touched = atomic_load(&header.anchorRealtimeNs);
  if (touched > now || now - touched < DAY_NS) return false;
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  /* The number may have gone to another process meanwhile. */
  return isRing && fl_start_ticks(pid) != header.processStartTicks;
}

void fl_sweep(int folder, const char *prefix) {
  /* A second descriptor, because closing a DIR closes its own. */
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  DIR *entries = fdopendir(again);
  if (entries == NULL) {
    close(again);
    return;
  }
  uint64_t now = fl_realtime();
  size_t length = strlen(prefix);
  const struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    if (strncmp(entry->d_name, prefix, length) != 0) continue;
    char *end;
    long pid = strtol(entry->d_name + length, &end, 10);
    if (pid <= 0 || pid > INT_MAX || *end != '.' || strstr(end, ".ring") == NULL) continue;
    if (is_left_over(folder, entry->d_name, (int)pid, now)) unlinkat(folder, entry->d_name, 0);
  }
  closedir(entries);
}
