/* Matrix products with their shapes, all the time and without a profiler (FLARE §4): FLOPS and what lies between kernels are
 * worked out elsewhere, from the records. Which functions, and where their arguments stand, is intercepted.def. */
#include "kernels.h"

typedef int (*Forwarded)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

typedef int (*GetStream)(uintptr_t handle, void **stream);

static uint16_t name_of(FlHeader *ring, FlProduct *product) {
  uint64_t generation = (uint64_t)atomic_load_explicit(&fl_generation, memory_order_relaxed) << 32;
  uint64_t named = atomic_load_explicit(&product->named, memory_order_relaxed);
  if ((uint32_t)named == 0 || named >> 32 != generation >> 32) {
    fl_sign(ring, NULL, "kernels");
    named = generation | ((uint64_t)fl_name(ring, product->real.name) + 1);
    atomic_store_explicit(&product->named, named, memory_order_relaxed);
  }
  return (uint16_t)((uint32_t)named - 1);
}

static bool find_stream(FlProduct *product, const uintptr_t *arguments, void **stream) {
  if (product->stream != 0) {
    *stream = (void *)arguments[product->stream];
    return true;
  }
  if (product->library->getStream.name == NULL) return false;
  GetStream get = (GetStream)(uintptr_t)fl_beside(product, &product->library->getStream);
  return get != NULL && get(arguments[0], stream) == 0;
}

static uint32_t hash(const void *pointer) {
  return (uint32_t)(((uint64_t)(uintptr_t)pointer * 0x9e3779b97f4a7c15u) >> 32);
}

/* About one in N, at random: a fixed step would meet the same product of every layer for ever. */
static bool is_chosen(unsigned every) {
  static _Thread_local uint32_t skip, seed;
  if (every == 0) return false;
  if (every == 1) return true;
  if (skip-- > 1) return false;
  if (seed == 0) seed = 0x9e3779b9u;
  seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
  skip = 1 + (uint32_t)((uint64_t)seed * (2 * (uint64_t)every - 1) >> 32);
  return true;
}

static void begin(FlProduct *product, const uintptr_t *arguments, FlCall *call) {
  FlHeader *ring = fl_ring();
  /* The agent's word for "no events" switches products off as well. */
  if (ring == NULL || atomic_load_explicit(&ring->maskWanted, memory_order_relaxed) == 1) return;
  FlShape shape;
  fl_shape_read(product, arguments, &shape);
  void *stream = NULL;
  bool hasStream = find_stream(product, arguments, &stream);
  call->ring = ring;
  call->flags = FL_SHIM;
  FlRecord record = {
      .kind = FL_MATRIX,
      .func = (uint8_t)((shape.transA ? 1 : 0) | (shape.transB ? 2 : 0) | (shape.compute % 64) << 2),
      .dtype = shape.dtype,
      .flags = FL_SHIM,
      .group = name_of(ring, product),
      .a = (shape.m & UINT32_MAX) | shape.n << 32,
      .b = (uint32_t)shape.k,
      .c = shape.batch,
      .issuedNs = call->issuedNs = fl_now(),
      .d = shape.isAligned ? 0 : 1,
      .e = hash(stream),
  };
  call->ticket = fl_append(ring, &record);
  if (hasStream) call->timing = fl_timing_begin(stream, &call->flags);
  else call->flags |= FL_UNTIMED;
}

static void end(FlCall *call, bool wentWell) {
  if (call->ring == NULL) return;
  call->flags |= fl_timing_end(&call->timing, wentWell);
  if (!wentWell) call->flags |= FL_FAILED | FL_UNTIMED;
  FlRecord *record = call->flags == FL_SHIM ? NULL : fl_open(call->ring, call->ticket);
  if (record != NULL) {
    record->flags |= call->flags;
    fl_close(record, call->ticket);
  }
  if (call->timing != NULL) fl_timing_submit_one(call->timing, call->ring, call->ticket, call->issuedNs);
}

/* Calls the library's function with everything that may have been an argument. Integers and pointers are handed over in
 * registers and then in slots of 8 bytes on the stack, in order, in the ABIs of Linux for x86-64 (System V) and arm64
 * (AAPCS64); so a call with 24 words puts the first n where a call with n would have, and the rest is not looked at. What we
 * read beyond the caller's own arguments is its stack frame: garbage, but there. A float or a struct by value would break
 * this, and no function in intercepted.def has one. */
static int forward(FlProduct *product, const uintptr_t *a, const void *caller) {
  enum { NOT_INITIALISED = 1 }; /* in all these libraries */
  Forwarded real = (Forwarded)(uintptr_t)fl_real(&product->real, caller);
  if (real == NULL) return NOT_INITIALISED;
  FlCall call = {.ring = NULL};
  FlThread *thread = fl_thread();
  /* cuBLAS may call cuBLASLt: the job called once. */
  if (thread->inside++ == 0 && is_chosen(fl_settings()->kernelEvery)) begin(product, a, &call);
  int result = real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15],
                    a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
  thread->inside--;
  end(&call, result == 0);
  return result;
}

#define ASK(library, function) {.name = (function), .libraries = library_##library.sonames}
#define LIBRARY(name, ...) static FlLibrary library_##name = {__VA_ARGS__};
#define PRODUCT(...)
#define TYPE(...)
#include "intercepted.def"
#undef PRODUCT
#undef LIBRARY

#define LIBRARY(...)
#define PARAMETERS                                                                                                \
  uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5, uintptr_t a6, uintptr_t a7, \
      uintptr_t a8, uintptr_t a9, uintptr_t a10, uintptr_t a11, uintptr_t a12, uintptr_t a13, uintptr_t a14,      \
      uintptr_t a15, uintptr_t a16, uintptr_t a17, uintptr_t a18, uintptr_t a19, uintptr_t a20, uintptr_t a21,    \
      uintptr_t a22, uintptr_t a23
#define PRODUCT(from, function, ...)                                                                       \
  static FlProduct product_##function = {.real = {.name = #function, .libraries = library_##from.sonames}, \
                                         .library = &library_##from,                                       \
                                         __VA_ARGS__};                                                     \
  FL_EXPORT int function(PARAMETERS);                                                                      \
  FL_EXPORT int function(PARAMETERS) {                                                                     \
    const uintptr_t all[FL_ARGUMENTS] = {a0,  a1,  a2,  a3,  a4,  a5,  a6,  a7,  a8,  a9,  a10, a11,       \
                                         a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23};      \
    return forward(&product_##function, all, FL_CALLER);                                                   \
  }
#include "intercepted.def"
