/* Makes the ring's file: folder, name, header (RING.md, "Where" and "Header"). Refuses whatever another user could have
 * laid in the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "within.h"

enum { RECORDS = 65536, LEAST_RECORDS = 64, FEW_RECORDS = 1024, MOST_RECORDS = 1 << 24, LIVE_NS = 10 * 1000000000ll };

static const char *first_set(const char *const *names) {
  for (; *names != NULL; names++) {
    const char *value = getenv(*names);
    if (value != NULL && value[0] != '\0') return value;
  }
  return NULL;
}

static void job_name(char out[49]) {
  static const char *const names[] = {"FAULTLINE_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", NULL};
  const char *job = first_set(names);
  if (job == NULL) job = "job";
  size_t n = 0;
  for (; job[n] != '\0' && n < 48; n++) {
    char c = job[n];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    out[n] = plain ? c : '_';
  }
  out[n] = '\0';
}

static int32_t rank_number(void) {
  static const char *const names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL};
  return fl_first_number(names);
}

uint64_t fl_start_ticks(int pid) {
  char name[32], text[1024];
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return 0;
  text[got] = '\0';
  /* Field 2, the program's name, may hold anything, brackets and blanks included. */
  char *at = strrchr(text, ')');
  if (at == NULL) return 0;
  for (int field = 2; field < 22; field++) {
    at = strchr(at, ' ');
    if (at == NULL) return 0;
    at++;
  }
  return strtoull(at, NULL, 10);
}

static int open_folder(char folder[PATH_MAX], const char **reason) {
  const char *wanted = getenv("FAULTLINE_DIR");
  int length = wanted != NULL && wanted[0] != '\0'
                   ? snprintf(folder, PATH_MAX, "%s", wanted)
                   : snprintf(folder, PATH_MAX, "/dev/shm/faultline-%u", (unsigned)geteuid());
  if (length < 0 || length >= PATH_MAX - 128) {
    *reason = "FAULTLINE_DIR is too long";
    return -1;
  }
  for (; length > 1 && folder[length - 1] == '/'; length--) folder[length - 1] = '\0';
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
    *reason = strerror(errno);
    return -1;
  }
  int opened = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) {
    /* Linux says ENOTDIR of a link that is not to be followed where a folder is asked for. */
    *reason = errno == ELOOP || errno == ENOTDIR ? "is a link or no folder" : strerror(errno);
    return -1;
  }
  struct stat status;
  if (fstat(opened, &status) != 0 || status.st_uid != geteuid())
    *reason = "the folder belongs to another user (set FAULTLINE_DIR)";
  else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0)
    *reason = "others may write into the folder (chmod go-w, or set FAULTLINE_DIR)";
  else return opened;
  close(opened);
  return -1;
}

static bool mapped_here(const char *path) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return false;
  char line[PATH_MAX + 128];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps) != NULL) found = strstr(line, path) != NULL;
  fclose(maps);
  return found;
}

/* A file of our name and process number: the same process before an exec, a dead one of the same number, or a living one (a
 * second copy of this library, or another container that shares the folder), which keeps it. */
static bool may_replace(int folder, const char *name, const char *path) {
  /* What is no file is in the way; opening a pipe to read would wait for a writer. */
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return true;
  FlHeader old;
  struct stat status;
  bool isFile = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  ssize_t got = isFile ? pread(file, &old, sizeof old, 0) : -1;
  close(file);
  if (got != (ssize_t)sizeof old || memcmp(old.magic, "FLTRING", 8) != 0) return true;
  if (old.processStartTicks == fl_start_ticks(getpid())) return !mapped_here(path);
  uint64_t beat = atomic_load(&old.heartbeatNs), now = fl_now();
  return beat > now || now - beat > (uint64_t)LIVE_NS;
}

static int create_file(int folder, const char *name, const char *path, const char **reason) {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int file = openat(folder, name, flags, 0600);
  if (file < 0 && errno == EEXIST) {
    if (!may_replace(folder, name, path)) {
      *reason = "another living process has it (set FAULTLINE_DIR or FAULTLINE_JOB)";
      return -1;
    }
    unlinkat(folder, name, 0);
    file = openat(folder, name, flags, 0600);
  }
  if (file < 0) *reason = strerror(errno);
  return file;
}

/* Allocated as a whole now: a store into a hole of a full file system would be a SIGBUS in the middle of training. */
static bool allocate(int file, size_t bytes, const char **reason) {
  struct rlimit limit;
  int error = 0;
  /* Asked first, because the kernel answers growth beyond the limit with SIGXFSZ, which kills. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) error = EFBIG;
  if (error == 0) {
    do error = posix_fallocate(file, 0, (off_t)bytes);
    while (error == EINTR);
  }
  if (error != 0) *reason = strerror(error);
  return error == 0;
}

static void say_who(FlHeader *ring, const char *job) {
  static const char *const sizes[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
  static const char *const locals[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", NULL};
  ring->writer = 1;
  ring->pid = getpid();
  ring->rank = rank_number();
  ring->worldSize = fl_first_number(sizes);
  ring->localRank = fl_first_number(locals);
  ring->gpu = -1;
  ring->processStartTicks = fl_start_ticks(getpid());
  const char *host = getenv("NCCL_HOSTID");
  if (host != NULL && host[0] != '\0') snprintf(ring->host, sizeof ring->host, "%s", host);
  else if (gethostname(ring->host, sizeof ring->host - 1) != 0) ring->host[0] = '\0';
  const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
  if (address != NULL && port != NULL) snprintf(ring->job, sizeof ring->job, "%s %s:%s", job, address, port);
  else snprintf(ring->job, sizeof ring->job, "%s", job);
}

static uint32_t record_count(void) {
  long wanted = fl_number("FAULTLINE_RECORDS", LEAST_RECORDS, MOST_RECORDS, 0);
  if (wanted == 0) return 0;
  uint32_t count = LEAST_RECORDS;
  while (count < wanted) count *= 2;
  return count;
}

/* Containers often have 64 MB of shared memory, which NCCL and data loaders need more than we do: unless the user says how
 * many records there shall be, a ring takes no more than a sixteenth of what is free. */
static uint32_t modest_count(int file, size_t besides) {
  struct statvfs room;
  uint32_t count = RECORDS;
  if (fstatvfs(file, &room) != 0) return count;
  uint64_t share = (uint64_t)room.f_bavail * room.f_frsize / 16;
  while (count > FEW_RECORDS && besides + (uint64_t)count * sizeof(FlRecord) > share) count /= 2;
  return count;
}

static void lay_out(FlHeader *header, uint32_t records) {
  header->version = FL_VERSION;
  header->headerBytes = sizeof(FlHeader);
  header->recordBytes = sizeof(FlRecord);
  header->recordCount = records;
  header->commsOffset = FL_COMMS_AT;
  header->commCapacity = FL_COMMS;
  header->connectionsOffset = FL_CONNECTIONS_AT;
  header->connectionCapacity = FL_CONNECTIONS;
  header->namesOffset = FL_NAMES_AT;
  header->nameCapacity = FL_NAMES;
  header->wordsOffset = FL_WORDS_AT;
  header->wordsBytes = FL_WORDS_BYTES;
  header->recordsOffset = FL_RECORDS_AT;
}

static FlHeader *map(int file, const char *job, const char **reason) {
  uint32_t records = record_count();
  if (records == 0) records = modest_count(file, FL_RECORDS_AT);
  size_t bytes = FL_RECORDS_AT + (size_t)records * sizeof(FlRecord);
  if (!allocate(file, bytes, reason)) return NULL;
  /* Populated, so that the first lap costs no page faults. */
  FlHeader *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (ring == MAP_FAILED) {
    *reason = strerror(errno);
    return NULL;
  }
  lay_out(ring, records);
  say_who(ring, job);
  ring->startedRealtimeNs = fl_realtime();
  ring->startedMonotonicNs = fl_now();
  atomic_store(&ring->anchorRealtimeNs, ring->startedRealtimeNs);
  atomic_store(&ring->anchorMonotonicNs, ring->startedMonotonicNs);
  atomic_store(&ring->heartbeatNs, ring->startedMonotonicNs);
  /* Last: a file without it is not a ring yet. */
  uint64_t magic;
  memcpy(&magic, "FLTRING", sizeof magic);
  __atomic_store_n((uint64_t __attribute__((may_alias)) *)ring->magic, magic, __ATOMIC_RELEASE);
  return ring;
}

FlHeader *fl_create(char path[PATH_MAX], const char **reason) {
  char folder[PATH_MAX], job[49], rank[16], prefix[96], name[128];
  int opened = open_folder(folder, reason);
  snprintf(path, PATH_MAX, "%s", folder);
  if (opened < 0) return NULL;
  job_name(job);
  if (rank_number() < 0) snprintf(rank, sizeof rank, "x");
  else snprintf(rank, sizeof rank, "%d", rank_number());
  snprintf(prefix, sizeof prefix, "%s.r%s.", job, rank);
  snprintf(name, sizeof name, "%s%d.native.ring", prefix, (int)getpid());
  fl_sweep(opened, prefix);
  size_t length = strlen(folder);
  snprintf(path + length, PATH_MAX - length, "/%s", name);

  FlHeader *ring = NULL;
  int file = create_file(opened, name, path, reason);
  if (file >= 0) {
    ring = map(file, job, reason);
    close(file);
    if (ring == NULL) unlinkat(opened, name, 0);
  }
  close(opened);
  return ring;
}
