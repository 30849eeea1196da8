/* How a process with a Python ring ended: its exit code, or the signal that nobody else handles (compare end.c). */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pyhook.h"
#include "within.h"

enum { RUNNING, IN_ORDER, EXCEPTION, SIGNAL };

static _Atomic(FlHeader *) watched;

static const struct {
  int number;
  const char *name;
} fatal[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},   {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
};
enum { FATAL = sizeof fatal / sizeof fatal[0] };

static void note(FlHeader *ring, int32_t how, int32_t code) {
  atomic_store(&ring->endedCode, code);
  atomic_store(&ring->endedNs, fl_now());
  atomic_store(&ring->endedHow, how);
}

/* A fork's child is not the process that the ring tells of. */
static bool is_own(const FlHeader *ring) {
  return ring != NULL && ring->pid == getpid();
}

static void note_signal(FlHeader *ring, int number) {
  if (!is_own(ring) || atomic_load(&ring->endedHow) > IN_ORDER) return;
  for (int i = 0; i < FATAL; i++) {
    if (fatal[i].number != number) continue;
    size_t length = strlen(fatal[i].name);
    memcpy(fl_words_of(ring), fatal[i].name, length);
    atomic_store(&ring->wordsLength, length);
  }
  note(ring, SIGNAL, number);
}

/* The disposition is the default one again when this runs (SA_RESETHAND): the raised signal ends the process as if nobody
 * had looked. The native ring is noted here too: its own handler is not put over ours. */
static void on_signal(int number) {
  int error = errno;
  note_signal(atomic_load(&watched), number);
  note_signal(fl_existing_ring(), number);
  errno = error;
  raise(number);
}

static bool may_replace(const struct sigaction *theirs) {
  if ((theirs->sa_flags & SA_SIGINFO) == 0 && theirs->sa_handler == SIG_DFL) return true;
  if (theirs->sa_handler == SIG_IGN) return false;
  /* end.c's handler knows the native ring alone; anybody else's has the last word. */
  Dl_info own, other;
  void *handler;
  memcpy(&handler, &theirs->sa_handler, sizeof handler);
  return dladdr((void *)fatal, &own) != 0 && dladdr(handler, &other) != 0 && own.dli_fbase == other.dli_fbase;
}

static void at_exit(int status, void *unused) {
  (void)unused;
  FlHeader *ring = atomic_load(&watched);
  if (!is_own(ring)) return;
  int32_t how = atomic_load(&ring->endedHow);
  if (how == RUNNING) note(ring, IN_ORDER, status);
  else if (how != SIGNAL) atomic_store(&ring->endedCode, status);
}

#if !defined(__GLIBC__)
static void at_exit_without_status(void) {
  FlHeader *ring = atomic_load(&watched);
  if (is_own(ring) && atomic_load(&ring->endedHow) == RUNNING) note(ring, IN_ORDER, 0);
}
#endif

/* Process 1 of a container: the kernel lets these pass it by where nobody handles them, so they are no end. */
static bool is_ignored(int number) {
  return getpid() == 1 && (number == SIGTERM || number == SIGXCPU);
}

void fl_watch_signals(FlHeader *ring) {
  atomic_store(&watched, ring);
  static bool watches;
  if (ring == NULL || watches) return;
  watches = true;
#if defined(__GLIBC__)
  on_exit(at_exit, NULL);
#else
  atexit(at_exit_without_status);
#endif
  const char *wanted = getenv("FAULTLINE_SIGNALS");
  if (wanted != NULL && strcmp(wanted, "0") == 0) return;
  struct sigaction ours = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
  sigfillset(&ours.sa_mask);
  for (int i = 0; i < FATAL; i++) {
    struct sigaction theirs;
    if (is_ignored(fatal[i].number)) continue;
    if (sigaction(fatal[i].number, NULL, &theirs) == 0 && may_replace(&theirs)) sigaction(fatal[i].number, &ours, NULL);
  }
}
