/* The Python probe's hook: sees calls and returns of a few functions (FLARE §4.1) and writes them into the Python ring.
 * Before Python 3.12 as a profile function in C, from 3.12 on as callbacks of sys.monitoring. Built without Python.h, so
 * that one library serves every version: what it needs of the interpreter is handed over as addresses (native.py). */
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "pyhook.h"

enum { CALL = 0, RETURN = 3 }; /* PyTrace_CALL, PyTrace_RETURN */
enum { FASTCALL = 0x0080 };    /* METH_FASTCALL */
enum { SLOTS = 2048, MOST_TRACED = SLOTS / 2, DEEPEST = 64 };
/* Python 3.8 has no PyFrame_GetCode; there, f_code lies behind the variable-sized object's head and f_back. */
enum { CODE_IN_FRAME = 32 };

static FlInterpreter python;
static _Atomic(FlHeader *) current;
static _Atomic(void *) on_first_call;

/* Code objects by address. An entry is never taken out: native.py keeps the code alive, so no address comes again. */
typedef struct {
  _Atomic(void *) code;
  void *onReturn;
  uint16_t name;
  bool isRecorded;
} Traced;
static Traced table[SLOTS];
static uint32_t tracedCount;

typedef struct {
  FlHeader *ring;
  void *code;
  uint64_t ticket;
} OpenCall;
static _Thread_local struct {
  uint64_t thread;
  uint32_t depth, deeper;
  OpenCall open[DEEPEST];
} calls;

static inline uint32_t slot_of(const void *code) {
  return (uint32_t)(((uintptr_t)code >> 4) * 0x9e3779b97f4a7c15u >> 53) & (SLOTS - 1);
}

static inline Traced *find(const void *code) {
  for (uint32_t slot = slot_of(code);; slot = (slot + 1) & (SLOTS - 1)) {
    void *there = atomic_load_explicit(&table[slot].code, memory_order_acquire);
    if (there == code) return &table[slot];
    if (there == NULL) return NULL;
  }
}

/* Under the GIL. False where the table is full. */
bool fl_py_trace(void *code, uint16_t name, bool isRecorded, void *onReturn) {
  Traced *entry = find(code);
  if (entry != NULL) {
    /* The same function for two reasons: neither takes the other's away. */
    if (isRecorded && !entry->isRecorded) {
      entry->name = name;
      entry->isRecorded = true;
    }
    if (onReturn != NULL) entry->onReturn = onReturn;
    return true;
  }
  if (tracedCount >= MOST_TRACED) return false;
  tracedCount++;
  uint32_t slot = slot_of(code);
  while (atomic_load_explicit(&table[slot].code, memory_order_relaxed) != NULL) slot = (slot + 1) & (SLOTS - 1);
  table[slot].onReturn = onReturn;
  table[slot].name = name;
  table[slot].isRecorded = isRecorded;
  atomic_store_explicit(&table[slot].code, code, memory_order_release);
  return true;
}

/* What it raises is its own affair: the traced function's caller must not see it. But for Ctrl-C, which may come at any
 * moment: it is meant for the job, and comes again when the job's own code goes on. */
static void call_python(void *callable) {
  void *result = python.callObject(callable, NULL);
  if (result != NULL) {
    python.decRef(result);
    return;
  }
  bool isInterrupt = python.errorMatches(python.keyboardInterrupt) != 0;
  python.clearError();
  if (isInterrupt) python.interrupt();
}

static FlHeader *ring_of_call(void) {
  FlHeader *ring = atomic_load_explicit(&current, memory_order_acquire);
  if (ring != NULL) return ring;
  void *first = atomic_load_explicit(&on_first_call, memory_order_acquire);
  if (first == NULL) return NULL;
  call_python(first);
  return atomic_load_explicit(&current, memory_order_acquire);
}

static void begin(const Traced *traced) {
  if (!traced->isRecorded) return;
  FlHeader *ring = ring_of_call();
  if (ring == NULL) return;
  if (calls.depth == DEEPEST) {
    calls.deeper++;
    return;
  }
  if (calls.thread == 0) calls.thread = (uint64_t)syscall(SYS_gettid);
  uint64_t now = fl_now();
  FlRecord record = {.kind = FL_PYTHON_CALL, .dtype = 255, .group = traced->name, .a = calls.thread, .b = calls.depth,
                     .issuedNs = now, .startedNs = now};
  OpenCall *open = &calls.open[calls.depth++];
  open->ring = ring;
  open->code = atomic_load_explicit(&traced->code, memory_order_relaxed);
  open->ticket = fl_append(ring, &record);
}

static void end(const OpenCall *open, uint64_t now, bool failed) {
  /* A fork's child returns from calls that its parent began. */
  if (open->ring != atomic_load_explicit(&current, memory_order_relaxed)) return;
  FlRecord *record = fl_open(open->ring, open->ticket);
  if (record == NULL) return;
  record->endedNs = now;
  if (failed) record->flags |= FL_FAILED;
  fl_close(record, open->ticket);
}

static void finish(const Traced *traced, bool failed) {
  void *code = atomic_load_explicit(&traced->code, memory_order_relaxed);
  if (traced->isRecorded && calls.deeper > 0) calls.deeper--;
  else if (traced->isRecorded) {
    uint32_t at = calls.depth;
    while (at > 0 && calls.open[at - 1].code != code) at--;
    /* Calls above it ended unseen, before it. None found: it began before anybody looked. */
    uint64_t now = at > 0 ? fl_now() : 0;
    while (at > 0 && calls.depth >= at) {
      calls.depth--;
      end(&calls.open[calls.depth], now, failed && calls.depth + 1 == at);
    }
  }
  if (traced->onReturn != NULL && !failed) call_python(traced->onReturn);
}

/* Py_tracefunc. The interpreter calls no hook while it is in one. */
static int profile(void *self, void *frame, int what, void *value) {
  (void)self;
  if (what != CALL && what != RETURN) return 0;
  void *code;
  if (python.frameCode != NULL) {
    code = python.frameCode(frame);
    python.decRef(code); /* The frame keeps it. */
  } else {
    memcpy(&code, (char *)frame + CODE_IN_FRAME, sizeof code);
  }
  const Traced *traced = find(code);
  if (traced == NULL) return 0;
  if (what == CALL) begin(traced);
  else finish(traced, value == NULL);
  return 0;
}

static void *nothing(void) {
  python.incRef(python.none);
  return python.none;
}

/* Callbacks of sys.monitoring: (code, offset[, value or exception]). */
static void *on_start(void *self, void *const *args, ptrdiff_t count) {
  (void)self;
  const Traced *traced = count > 0 ? find(args[0]) : NULL;
  if (traced != NULL) begin(traced);
  return nothing();
}
static void *on_return(void *self, void *const *args, ptrdiff_t count) {
  (void)self;
  const Traced *traced = count > 0 ? find(args[0]) : NULL;
  if (traced != NULL) finish(traced, false);
  return nothing();
}
/* Of every function that an exception leaves: this event cannot be had for single functions. */
static void *on_unwind(void *self, void *const *args, ptrdiff_t count) {
  (void)self;
  const Traced *traced = count > 0 ? find(args[0]) : NULL;
  if (traced != NULL) finish(traced, true);
  return nothing();
}

static FlPyMethod methods[] = {
    {"start", on_start, FASTCALL, NULL}, {"return", on_return, FASTCALL, NULL}, {"unwind", on_unwind, FASTCALL, NULL}};

int fl_py_abi(void) {
  return FL_PY_ABI;
}

void fl_py_interpreter(const FlInterpreter *interpreter) {
  python = *interpreter;
}

void fl_py_ring(FlHeader *ring, void *onFirstCall) {
  calls.thread = 0;
  atomic_store_explicit(&on_first_call, onFirstCall, memory_order_release);
  atomic_store_explicit(&current, ring, memory_order_release);
}

FlHeader *fl_py_existing_ring(void) {
  return atomic_load_explicit(&current, memory_order_acquire);
}

void fl_py_profile(bool on) {
  python.setProfile(on ? profile : NULL, on ? python.none : NULL);
}

void *fl_py_callback(int which) {
  return which >= 0 && which < 3 ? python.newFunction(&methods[which], NULL, NULL) : NULL;
}

void fl_py_append(uint8_t kind, uint8_t function, uint64_t a, uint32_t b, int32_t c, uint64_t issuedNs, uint64_t endedNs,
                  uint32_t d, uint32_t e) {
  FlHeader *ring = atomic_load_explicit(&current, memory_order_acquire);
  if (ring == NULL) return;
  FlRecord record = {.kind = kind, .func = function, .dtype = 255, .group = FL_NONE, .a = a, .b = b, .c = c,
                     .issuedNs = issuedNs, .startedNs = issuedNs, .endedNs = endedNs, .d = d, .e = e};
  fl_append(ring, &record);
}
