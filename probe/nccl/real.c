/* Where the function is that we stand before. */
#include <dlfcn.h>
#include <stdlib.h>
#include "shim.h"

const char *const fl_nccl_libraries[] = {"libnccl.so.2", "librccl.so.1", NULL};

/* What a search finds may be ourselves: whoever is linked against us has us among its own libraries. */
static void *foreign(void *address) {
  Dl_info there, here;
  if (address == NULL || dladdr(address, &there) == 0) return address;
  if (dladdr((void *)(uintptr_t)&fl_find_real, &here) == 0) return address;
  return there.dli_fbase == here.dli_fbase ? NULL : address;
}

static void *in_library(const char *library, const char *function) {
  if (library == NULL || *library == '\0') return NULL;
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return NULL;
  void *address = foreign(dlsym(handle, function));
  dlclose(handle); /* Gives back our count only: whoever loaded it still holds it. */
  return address;
}

/* The dynamic linker looks into what is global, then into the caller's own libraries: PyTorch loads NCCL as a dependency of
 * a library that Python opened for itself, where RTLD_NEXT does not look. A library with a static NCCL in it is its own
 * caller. */
static void *in_callers_libraries(const void *caller, const char *function) {
  Dl_info info;
  if (caller == NULL || dladdr(caller, &info) == 0) return NULL;
  return in_library(info.dli_fname, function);
}

/* The address is kept, so what it lies in must stay, even where the job closes its library meanwhile. */
static void hold(void *address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL || info.dli_fname[0] == '\0') return;
  void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle != NULL) dlclose(handle);
}

/* Where a function of NCCL was found: its others are there, too. */
static _Atomic(void *) in_nccl;

void *fl_find_real(FlReal *function, const void *caller) {
  bool isNccl = function->libraries == fl_nccl_libraries;
  if (caller == NULL && isNccl) caller = atomic_load_explicit(&in_nccl, memory_order_relaxed);
  void *address = foreign(dlsym(RTLD_NEXT, function->name));
  if (address == NULL) address = in_callers_libraries(caller, function->name);
  if (address == NULL && isNccl) address = in_library(getenv("FAULTLINE_NCCL_LIBRARY"), function->name);
  for (const char *const *library = function->libraries; address == NULL && *library != NULL; library++)
    address = in_library(*library, function->name);
  if (address != NULL) hold(address);
  dlerror(); /* The job must not meet our failed searches in its own dlerror(). */
  /* A failure is not remembered: the library may be loaded later. */
  if (address != NULL && isNccl) atomic_store_explicit(&in_nccl, address, memory_order_relaxed);
  if (address != NULL) atomic_store_explicit(&function->address, address, memory_order_release);
  return address;
}
