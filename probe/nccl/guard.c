/* A ring's file that somebody truncates leaves pages behind its new end, and a store into them is a SIGBUS. The job must not
 * die of that: such pages become plain memory, and what is written there is lost.
 *
 * Put over whatever handled SIGBUS before, and only where that is nobody or ourselves. Any other SIGBUS puts that back and
 * takes its course there: a fault comes again when its instruction does. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "within.h"

/* The native ring, the Python one, and those of parents, of which a fork's child keeps copies. The oldest gives way. */
enum { RINGS = 8 };
static struct {
  _Atomic uintptr_t from, to;
} rings[RINGS];
static unsigned ring_count;
static uintptr_t page_bytes;
static struct sigaction before;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* All behind a page beyond the file's end is beyond it too. The header reads as zeros then, which writers
 * do not mind (ring.h). */
static bool cover(uintptr_t address) {
  for (int i = 0; i < RINGS; i++) {
    uintptr_t from = atomic_load(&rings[i].from), to = atomic_load(&rings[i].to);
    if (address < from || address >= to) continue;
    uintptr_t page = address & ~(page_bytes - 1);
    void *got = mmap((void *)page, to - page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return got != MAP_FAILED;
  }
  return false;
}

static void on_bus(int number, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  bool isFault = info->si_code > 0;
  if (!isFault || !cover((uintptr_t)info->si_addr)) {
    sigaction(number, &before, NULL);
    /* One that was sent is sent on as it is, with its sender. */
    if (!isFault && syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info) != 0) raise(number);
  }
  errno = error;
}

static bool is_ours(const struct sigaction *theirs) {
  Dl_info own, other;
  void *handler;
  memcpy(&handler, &theirs->sa_handler, sizeof handler);
  return dladdr((void *)rings, &own) != 0 && dladdr(handler, &other) != 0 && own.dli_fbase == other.dli_fbase;
}

static void watch_bus(bool isOverOurs) {
  struct sigaction theirs;
  if (sigaction(SIGBUS, NULL, &theirs) != 0) return;
  bool hasInfo = (theirs.sa_flags & SA_SIGINFO) != 0;
  if (hasInfo && theirs.sa_sigaction == on_bus) return;
  bool isNobody = !hasInfo && theirs.sa_handler == SIG_DFL, isIgnored = !hasInfo && theirs.sa_handler == SIG_IGN;
  if (isIgnored || !(isNobody || isOverOurs || is_ours(&theirs))) return;
  struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigfillset(&ours.sa_mask);
  before = theirs;
  sigaction(SIGBUS, &ours, NULL);
}

void fl_guard(void *ring, size_t bytes, bool isOverOurs) {
  const char *wanted = getenv("FAULTLINE_SIGNALS");
  if (wanted != NULL && strcmp(wanted, "0") == 0) return;
  pthread_mutex_lock(&changing);
  page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  unsigned at = ring_count++ % RINGS;
  atomic_store(&rings[at].to, 0);
  atomic_store(&rings[at].from, (uintptr_t)ring);
  atomic_store(&rings[at].to, (uintptr_t)ring + (bytes + page_bytes - 1) / page_bytes * page_bytes);
  watch_bus(isOverOurs);
  pthread_mutex_unlock(&changing);
}
