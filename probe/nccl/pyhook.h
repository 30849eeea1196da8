/* Between the C library and probe/python/faultline_probe/native.py, which calls it through ctypes. */
#ifndef FAULTLINE_PYHOOK_H
#define FAULTLINE_PYHOOK_H
#include <stddef.h>
#include "ring.h"

/* One more whenever something below changes: native.py uses no library of another number. */
enum { FL_PY_ABI = 3 };

/* PyMethodDef of the stable ABI. */
typedef struct {
  const char *name;
  void *(*call)(void *self, void *const *args, ptrdiff_t count);
  int flags;
  const char *text;
} FlPyMethod;

/* Addresses of the interpreter's own functions. */
typedef struct {
  void (*setProfile)(int (*hook)(void *, void *, int, void *), void *self); /* PyEval_SetProfile */
  void *(*frameCode)(void *frame);                                          /* PyFrame_GetCode; NULL before 3.9 */
  void (*incRef)(void *object);
  void (*decRef)(void *object);
  void *(*callObject)(void *callable, void *args); /* PyObject_CallObject */
  void (*clearError)(void);                        /* PyErr_Clear */
  int (*errorMatches)(void *kind);                 /* PyErr_ExceptionMatches */
  void *keyboardInterrupt;                         /* PyExc_KeyboardInterrupt */
  void (*interrupt)(void);                         /* PyErr_SetInterrupt */
  void *(*newFunction)(FlPyMethod *method, void *self, void *module); /* PyCFunction_NewEx */
  void *none;
} FlInterpreter;

int fl_py_abi(void);
void fl_py_interpreter(const FlInterpreter *interpreter);

/* Where calls are recorded; NULL: nowhere, and `onFirstCall` is asked to make a ring. */
void fl_py_ring(FlHeader *ring, void *onFirstCall);
FlHeader *fl_py_existing_ring(void);

/* Follows a code object: records its calls under `name`, calls `onReturn` (or NULL) after each that raised nothing. */
bool fl_py_trace(void *code, uint16_t name, bool isRecorded, void *onReturn);

/* The profile function of the calling thread. */
void fl_py_profile(bool on);

/* A new Python function for sys.monitoring: 0 start, 1 return, 2 unwind. */
void *fl_py_callback(int which);

/* A record of another kind. */
void fl_py_append(uint8_t kind, uint8_t function, uint64_t a, uint32_t b, int32_t c, uint64_t issuedNs, uint64_t endedNs,
                  uint32_t d, uint32_t e);

/* Notes in the ring how the process ends, as end.c does for the native one: by exit with its code, by a fatal signal.
 * fl_guard of within.h is called by Python, too, once faulthandler has taken SIGBUS. */
void fl_watch_signals(FlHeader *ring);

#endif
