/* A link that breaks to order: what this process sends to one other process of the same machine over TCP does not leave
 * any more, or leaves slowly. For LD_PRELOAD, in the sending rank alone.
 *
 *   WIRE_FAULT_PID      file with the pid of the process at the other end
 *   WIRE_FAULT_TRIGGER  the fault is on while this file exists
 *   WIRE_FAULT_HOW      "dead", or "slow=MBPS"; where it is not set, the trigger file says it
 *   WIRE_FAULT_SPARE    a port whose connections stay well (the rendezvous' store)
 *
 * NCCL's socket transport sends with MSG_DONTWAIT and tries again after EAGAIN, Gloo writes to non-blocking sockets: both
 * see what a peer sees whose switch drops everything, a send buffer that never empties. A blocking caller is held. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FDS = 4096, MOST_PARTS = 64, LEAST_BYTES = 4096 };

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

/* ---- whether the fault is on: the file is looked for at most every 5 ms */

static _Atomic double bytes_per_ns; /* 0: nothing leaves */

/* Whether it says anything; a file that is being written does not yet. */
static bool heard(const char *how) {
  if (how == NULL || how[0] == '\0') return false;
  atomic_store(&bytes_per_ns, strncmp(how, "slow=", 5) == 0 ? atof(how + 5) * 1e-3 : 0);
  return true;
}

static bool told_by(const char *path) {
  char text[64];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
  return heard(text);
}

static bool triggered(void) {
  static _Atomic uint64_t looked;
  static _Atomic bool on;
  uint64_t now = now_ns(), last = atomic_load(&looked);
  if (now - last >= 5000000u && atomic_compare_exchange_strong(&looked, &last, now)) {
    const char *path = getenv("WIRE_FAULT_TRIGGER"), *how = getenv("WIRE_FAULT_HOW");
    atomic_store(&on, path != NULL && (how == NULL ? told_by(path) : access(path, F_OK) == 0 && heard(how)));
  }
  return atomic_load(&on);
}

/* ---- which socket leads to the other process */

typedef struct {
  uint16_t family, ownPort, peerPort;
} Ends;

static uint16_t port_of(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)address)->sin_port);
  return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
}

static bool ends_of(int fd, Ends *ends) {
  struct sockaddr_storage own, peer;
  socklen_t ownSize = sizeof own, peerSize = sizeof peer;
  if (getsockname(fd, (struct sockaddr *)&own, &ownSize) != 0) return false;
  if (getpeername(fd, (struct sockaddr *)&peer, &peerSize) != 0) return false;
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return false;
  *ends = (Ends){.family = own.ss_family, .ownPort = port_of(&own), .peerPort = port_of(&peer)};
  return true;
}

/* The other end's row has our ends swapped. On loopback the two ports are enough. Inode 0: not accepted yet. */
static unsigned long other_inode(const char *table, Ends ends) {
  FILE *file = fopen(table, "re");
  if (file == NULL) return 0;
  char line[512];
  unsigned long found = 0;
  while (found == 0 && fgets(line, sizeof line, file) != NULL) {
    unsigned own, peer;
    unsigned long inode;
    if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %*x %*s %*s %*s %*u %*u %lu", &own, &peer, &inode) == 3 &&
        own == ends.peerPort && peer == ends.ownPort)
      found = inode;
  }
  fclose(file);
  return found;
}

static bool holds_socket(long pid, unsigned long inode) {
  char path[64], wanted[48];
  snprintf(path, sizeof path, "/proc/%ld/fd", pid);
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  DIR *folder = opendir(path);
  if (folder == NULL) return false;
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
    char target[64];
    ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = '\0';
    found = strcmp(target, wanted) == 0;
  }
  closedir(folder);
  return found;
}

static long other_pid(void) {
  const char *path = getenv("WIRE_FAULT_PID");
  FILE *file = path == NULL ? NULL : fopen(path, "re");
  long pid = 0;
  if (file != NULL) {
    if (fscanf(file, "%ld", &pid) != 1) pid = 0;
    fclose(file);
  }
  return pid;
}

enum { UNKNOWN, HEALTHY, FAULTY };

static int look_up(int fd) {
  Ends ends;
  if (!ends_of(fd, &ends)) return HEALTHY;
  const char *spare = getenv("WIRE_FAULT_SPARE");
  if (spare != NULL && (atoi(spare) == ends.peerPort || atoi(spare) == ends.ownPort)) return HEALTHY;
  unsigned long inode = other_inode("/proc/self/net/tcp", ends);
  if (inode == 0) inode = other_inode("/proc/self/net/tcp6", ends);
  long pid = other_pid();
  if (inode == 0 || pid == 0) return UNKNOWN;
  return holds_socket(pid, inode) ? FAULTY : HEALTHY;
}

/* Remembered by the socket's own inode, since numbers of descriptors are used again. */
static bool leads_there(int fd) {
  static _Atomic uint64_t remembered[MOST_FDS]; /* inode · 2 + faulty */
  struct stat about;
  if (fd < 0 || fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
  uint64_t inode = (uint64_t)about.st_ino << 1;
  if (fd < MOST_FDS) {
    uint64_t known = atomic_load(&remembered[fd]);
    if ((known & ~1ull) == inode) return (known & 1) != 0;
  }
  int is = look_up(fd);
  if (is != UNKNOWN && fd < MOST_FDS) atomic_store(&remembered[fd], inode | (is == FAULTY));
  return is == FAULTY;
}

/* ---- how many bytes may leave now */

static size_t allowance(size_t wanted) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static uint64_t filled;
  static double tokens;
  double rate = atomic_load(&bytes_per_ns);
  if (rate <= 0) return 0;
  size_t granted = 0;
  pthread_mutex_lock(&lock);
  uint64_t now = now_ns();
  if (filled != 0) tokens += (double)(now - filled) * rate;
  filled = now;
  double most = rate * 2e6 + 2 * LEAST_BYTES; /* two milliseconds' worth: no burst after a pause */
  if (tokens > most) tokens = most;
  if (tokens >= (double)(wanted < LEAST_BYTES ? wanted : LEAST_BYTES)) {
    granted = tokens < (double)wanted ? (size_t)tokens : wanted;
    tokens -= (double)granted;
  }
  pthread_mutex_unlock(&lock);
  return granted;
}

/* Bytes of this call that may go: all of them where the link is well; 0 is EAGAIN. A blocking caller waits here. */
static size_t admitted(int fd, size_t wanted, int flags) {
  if (wanted == 0 || !triggered() || !leads_there(fd)) return wanted;
  bool waits = (flags & MSG_DONTWAIT) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
  size_t granted;
  while ((granted = allowance(wanted)) == 0 && waits) {
    nap();
    if (!triggered()) return wanted;
  }
  return granted;
}

/* ---- the calls */

#define REAL(name) \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define REFUSE_IF_NONE(granted, wanted) \
  if ((granted) == 0 && (wanted) > 0) { \
    errno = EAGAIN; \
    return -1; \
  }

ssize_t send(int fd, const void *data, size_t size, int flags) {
  REAL(send);
  size_t granted = admitted(fd, size, flags);
  REFUSE_IF_NONE(granted, size)
  return real(fd, data, granted, flags);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t toSize) {
  REAL(sendto);
  size_t granted = to == NULL ? admitted(fd, size, flags) : size;
  REFUSE_IF_NONE(granted, size)
  return real(fd, data, granted, flags, to, toSize);
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  size_t granted = admitted(fd, size, 0);
  REFUSE_IF_NONE(granted, size)
  return real(fd, data, granted);
}

/* The first `bytes` bytes of the parts, as parts of their own; how many parts that is. */
static size_t cut(struct iovec *cuts, const struct iovec *parts, size_t count, size_t bytes) {
  size_t used = 0;
  for (; used < count && used < MOST_PARTS && bytes > 0; used++) {
    cuts[used] = parts[used];
    if (cuts[used].iov_len > bytes) cuts[used].iov_len = bytes;
    bytes -= cuts[used].iov_len;
  }
  return used;
}

static size_t total(const struct iovec *parts, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += parts[i].iov_len;
  return sum;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  size_t size = count > 0 ? total(parts, (size_t)count) : 0, granted = admitted(fd, size, 0);
  REFUSE_IF_NONE(granted, size)
  if (granted == size) return real(fd, parts, count);
  struct iovec cuts[MOST_PARTS];
  return real(fd, cuts, (int)cut(cuts, parts, (size_t)count, granted));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  size_t size = total(message->msg_iov, message->msg_iovlen), granted = admitted(fd, size, flags);
  REFUSE_IF_NONE(granted, size)
  if (granted == size) return real(fd, message, flags);
  struct iovec cuts[MOST_PARTS];
  struct msghdr cutMessage = *message;
  cutMessage.msg_iov = cuts;
  cutMessage.msg_iovlen = cut(cuts, message->msg_iov, message->msg_iovlen, granted);
  return real(fd, &cutMessage, flags);
}
