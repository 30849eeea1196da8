/* Plays libcublas.so.12 and, with STUB_LT, libcublasLt.so.12: keeps what it was called with. */
#include <string.h>
#include "stub.h"

#ifndef STUB_LT
static uint64_t arguments[24];
static int result_wanted;
static _Atomic uint64_t products;

const uint64_t *stub_arguments(void) {
  return arguments;
}
void stub_cublas_result(int result) {
  result_wanted = result;
}
uint64_t stub_products(void) {
  return products;
}

static int keep(const StubHandle *handle, const uint64_t *words, size_t bytes) {
  memset(arguments, 0, sizeof arguments);
  memcpy(arguments, words, bytes);
  products++;
  stub_launch(handle->stream, 1000);
  return result_wanted;
}
#define P(pointer) (uint64_t)(uintptr_t)(pointer)
#define KEEP(...) keep(handle, (const uint64_t[]){P(handle), __VA_ARGS__}, sizeof((const uint64_t[]){0, __VA_ARGS__}))

int cublasGetStream_v2(StubHandle *handle, void **stream) {
  *stream = handle->stream;
  return 0;
}
int cublasSgemm_v2(StubHandle *handle, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int lda,
                   const void *b, int ldb, const float *beta, void *c, int ldc) {
  return KEEP((unsigned)ta, (unsigned)tb, (unsigned)m, (unsigned)n, (unsigned)k, P(alpha), P(a), (unsigned)lda, P(b),
              (unsigned)ldb, P(beta), P(c), (unsigned)ldc);
}
/* As newer ones do: the product itself is the other library's. */
int cublasGemmEx(StubHandle *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int ta_, int lda,
                 const void *b, int tb_, int ldb, const void *beta, void *c, int tc_, int ldc, int compute, int algo) {
  cublasLtMatmul(handle, NULL, alpha, a, NULL, b, NULL, beta, c, NULL, c, NULL, NULL, NULL, 0, handle->stream);
  return KEEP((unsigned)ta, (unsigned)tb, (unsigned)m, (unsigned)n, (unsigned)k, P(alpha), P(a), (unsigned)ta_,
              (unsigned)lda, P(b), (unsigned)tb_, (unsigned)ldb, P(beta), P(c), (unsigned)tc_, (unsigned)ldc,
              (unsigned)compute, (unsigned)algo);
}
int cublasSgemmStridedBatched(StubHandle *handle, int ta, int tb, int m, int n, int k, const float *alpha, const void *a,
                              int lda, long long sa, const void *b, int ldb, long long sb, const float *beta, void *c,
                              int ldc, long long sc, int batch) {
  return KEEP((unsigned)ta, (unsigned)tb, (unsigned)m, (unsigned)n, (unsigned)k, P(alpha), P(a), (unsigned)lda,
              (uint64_t)sa, P(b), (unsigned)ldb, (uint64_t)sb, P(beta), P(c), (unsigned)ldc, (uint64_t)sc, (unsigned)batch);
}
int cublasGemmStridedBatchedEx(StubHandle *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                               int ta_, int lda, long long sa, const void *b, int tb_, int ldb, long long sb,
                               const void *beta, void *c, int tc_, int ldc, long long sc, int batch, int compute, int algo) {
  return KEEP((unsigned)ta, (unsigned)tb, (unsigned)m, (unsigned)n, (unsigned)k, P(alpha), P(a), (unsigned)ta_,
              (unsigned)lda, (uint64_t)sa, P(b), (unsigned)tb_, (unsigned)ldb, (uint64_t)sb, P(beta), P(c), (unsigned)tc_,
              (unsigned)ldc, (uint64_t)sc, (unsigned)batch, (unsigned)compute, (unsigned)algo);
}
#else
int cublasLtMatmul(StubHandle *handle, StubProduct *product, const void *alpha, const void *a, StubLayout *la, const void *b,
                   StubLayout *lb, const void *beta, const void *c, StubLayout *lc, void *d, StubLayout *ld,
                   const void *algo, void *workspace, size_t bytes, void *stream) {
  stub_launch(stream, 1000);
  return bytes == 12345 ? 13 : 0;
}
static int give(const void *value, size_t size, void *to, size_t bytes, size_t *written) {
  if (bytes != size) return 7;
  memcpy(to, value, size);
  *written = size;
  return 0;
}
int cublasLtMatrixLayoutGetAttribute(const StubLayout *layout, int attribute, void *to, size_t bytes, size_t *written) {
  switch (attribute) {
    case 0: return give(&layout->type, 4, to, bytes, written);
    case 2: return give(&layout->rows, 8, to, bytes, written);
    case 3: return give(&layout->columns, 8, to, bytes, written);
    case 4: return give(&layout->leading, 8, to, bytes, written);
    case 5: return give(&layout->batch, 4, to, bytes, written);
    default: return 7;
  }
}
int cublasLtMatmulDescGetAttribute(const StubProduct *product, int attribute, void *to, size_t bytes, size_t *written) {
  switch (attribute) {
    case 0: return give(&product->compute, 4, to, bytes, written);
    case 3: return give(&product->transA, 4, to, bytes, written);
    case 4: return give(&product->transB, 4, to, bytes, written);
    default: return 7;
  }
}
#endif
