/* The driver that the job has loaded, by the names of its functions. */
#include <dlfcn.h>
#include <string.h>
#include "cuda.h"

FlDriver fl_driver;

typedef struct {
  const char *library;
  const char *names[10]; /* as the fields of FlDriver; NULL where there is no such function */
} Names;
static const Names drivers[] = {
    {"libcuda.so.1",
     {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuStreamCreate", "cuStreamIsCapturing",
      "cuStreamGetCtx", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode"}},
    {"libamdhip64.so",
     {"hipEventCreateWithFlags", "hipEventRecord", "hipEventQuery", "hipEventElapsedTime", "hipStreamCreateWithFlags",
      "hipStreamIsCapturing", NULL, "hipCtxGetCurrent", "hipCtxSetCurrent", "hipThreadExchangeStreamCaptureMode"}},
    {"libamdhip64.so.7", {NULL}}, /* the names of the line before */
    {"libamdhip64.so.6", {NULL}},
    {"libamdhip64.so.5", {NULL}},
};
_Static_assert(sizeof(FlDriver) == 10 * sizeof(void *), "one name for each function");

static bool load(void *handle, const char *const *names) {
  void *functions[10];
  for (int i = 0; i < 10; i++) {
    functions[i] = names[i] == NULL ? NULL : dlsym(handle, names[i]);
    bool needed = i != 6 && i != 9;
    if (functions[i] == NULL && needed) return false;
  }
  memcpy(&fl_driver, functions, sizeof fl_driver);
  return true;
}

bool fl_driver_find(void) {
  const char *const *names = NULL;
  bool found = false;
  for (size_t i = 0; i < sizeof drivers / sizeof drivers[0] && !found; i++) {
    if (drivers[i].names[0] != NULL) names = drivers[i].names;
    void *handle = dlopen(drivers[i].library, RTLD_LAZY | RTLD_NOLOAD);
    /* The handle is kept: the driver must not go while we hold its functions. */
    found = handle != NULL && load(handle, names);
  }
  dlerror();
  return found;
}

int fl_relax_capture(int mode) {
  if (fl_driver.captureMode != NULL && fl_driver.captureMode(&mode) != FL_CUDA_SUCCESS) fl_timing_stop();
  return mode;
}
