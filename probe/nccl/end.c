/* How the process ended: in order, or by a signal that nobody else handles. What kills without asking (SIGKILL) leaves the
 * header as it is, and the agent sees a process that is gone. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "within.h"

enum { RUNNING, IN_ORDER, EXCEPTION, SIGNAL };

/* A fork's child, or one between vfork and exec, is not the process that the ring tells of. */
static FlHeader *own_ring(void) {
  FlHeader *ring = fl_existing_ring();
  return ring != NULL && ring->pid == getpid() ? ring : NULL;
}

static void note(FlHeader *ring, int32_t how, int32_t code) {
  atomic_store(&ring->endedCode, code);
  atomic_store(&ring->endedNs, fl_now());
  atomic_store(&ring->endedHow, how);
}

static void at_exit(int status, void *unused) {
  (void)unused;
  FlHeader *ring = own_ring();
  if (ring != NULL && atomic_load(&ring->endedHow) == RUNNING) note(ring, IN_ORDER, status);
}

static const struct {
  int number;
  const char *name;
} fatal[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},   {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
};
enum { FATAL = sizeof fatal / sizeof fatal[0] };

/* snprintf is not to be called in a signal handler. */
static size_t put_text(char *to, const char *text) {
  size_t length = strlen(text);
  memcpy(to, text, length);
  return length;
}

static size_t put_number(char *to, unsigned long value, unsigned base) {
  char digits[24];
  size_t count = 0;
  do digits[count++] = "0123456789abcdef"[value % base];
  while ((value /= base) != 0);
  for (size_t i = 0; i < count; i++) to[i] = digits[count - 1 - i];
  return count;
}

/* "SIGSEGV at 0x10", "SIGTERM from process 77 of user 1000". */
static void write_words(FlHeader *ring, int number, const siginfo_t *info) {
  char *to = fl_words_of(ring);
  size_t length = 0;
  for (int i = 0; i < FATAL; i++)
    if (fatal[i].number == number) length += put_text(to, fatal[i].name);
  if (info->si_code == SI_USER || info->si_code == SI_QUEUE) {
    length += put_text(to + length, " from process ");
    length += put_number(to + length, (unsigned long)info->si_pid, 10);
    length += put_text(to + length, " of user ");
    length += put_number(to + length, (unsigned long)info->si_uid, 10);
  } else if (info->si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL)) {
    length += put_text(to + length, " at 0x");
    length += put_number(to + length, (unsigned long)info->si_addr, 16);
  }
  atomic_store(&ring->wordsLength, length);
}

/* The disposition is the default one again when this runs (SA_RESETHAND): the raised signal ends the process as if nobody
 * had looked, with the same status and core. */
static void on_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  FlHeader *ring = own_ring();
  /* A crash while the process exits in order is a crash. */
  if (ring != NULL && atomic_load(&ring->endedHow) <= IN_ORDER) {
    write_words(ring, number, info);
    note(ring, SIGNAL, number);
  }
  errno = error;
  raise(number);
}

/* Process 1 of a container: the kernel lets these pass it by where nobody handles them, so they are no end. */
static bool is_ignored(int number) {
  return getpid() == 1 && (number == SIGTERM || number == SIGXCPU);
}

static void watch_signals(void) {
  const char *wanted = getenv("FAULTLINE_SIGNALS");
  if (wanted != NULL && strcmp(wanted, "0") == 0) return;
  struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND | SA_ONSTACK};
  sigfillset(&ours.sa_mask);
  for (int i = 0; i < FATAL; i++) {
    struct sigaction theirs;
    if (is_ignored(fatal[i].number) || sigaction(fatal[i].number, NULL, &theirs) != 0) continue;
    /* Whoever has a handler, or ignores it, has the last word. */
    if ((theirs.sa_flags & SA_SIGINFO) == 0 && theirs.sa_handler == SIG_DFL) sigaction(fatal[i].number, &ours, NULL);
  }
}

#if !defined(__GLIBC__)
static void at_exit_without_status(void) {
  at_exit(0, NULL);
}
#endif

/* Once a process tree: a fork inherits handlers of both kinds. */
void fl_watch_end(void) {
  static bool watches;
  if (watches) return;
  watches = true;
#if defined(__GLIBC__)
  on_exit(at_exit, NULL);
#else
  atexit(at_exit_without_status);
#endif
  watch_signals();
}
