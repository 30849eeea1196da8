/* Matrix products of every kind of function: by arguments, by objects, with more arguments than registers. */
#include <stdio.h>
#include "scenarios.h"
#include "stub.h"

static const float one = 1, zero = 0;
static char a, b, c;

/* How many of the words did not arrive as they were sent. */
static int wrong(const uint64_t *sent, int count) {
  int differ = 0;
  for (int i = 0; i < count; i++) differ += stub_arguments()[i] != sent[i];
  return differ;
}
#define P(pointer) (uint64_t)(uintptr_t)(pointer)

void products(void) {
  StubHandle handle = {stub_stream(3)};
  int differ = 0, results = 0;
  results |= cublasSgemm_v2(&handle, 1, 0, 100, 200, 300, &one, &a, 304, &b, 304, &zero, &c, 104);
  differ += wrong((uint64_t[]){P(&handle), 1, 0, 100, 200, 300, P(&one), P(&a), 304, P(&b), 304, P(&zero), P(&c), 104}, 14);
  results |= cublasGemmEx(&handle, 0, 1, 64, 128, 256, &one, &a, 14, 64, &b, 14, 128, &zero, &c, 14, 64, 68, 99);
  differ += wrong((uint64_t[]){P(&handle), 0, 1, 64, 128, 256, P(&one), P(&a), 14, 64, P(&b), 14, 128, P(&zero), P(&c), 14,
                               64, 68, 99}, 19);
  results |= cublasSgemmStridedBatched(&handle, 0, 0, 10, 20, 30, &one, &a, 11, 1LL << 40, &b, 31, 1LL << 41, &zero, &c, 12,
                                       1LL << 42, 7);
  differ += wrong((uint64_t[]){P(&handle), 0, 0, 10, 20, 30, P(&one), P(&a), 11, 1LL << 40, P(&b), 31, 1LL << 41, P(&zero),
                               P(&c), 12, 1LL << 42, 7}, 18);
  results |= cublasGemmStridedBatchedEx(&handle, 2, 1, 11, 22, 33, &one, &a, 2, 40, 5, &b, 2, 48, 6, &zero, &c, 2, 56, 7, 9,
                                        64, 101);
  differ += wrong((uint64_t[]){P(&handle), 2, 1, 11, 22, 33, P(&one), P(&a), 2, 40, 5, P(&b), 2, 48, 6, P(&zero), P(&c), 2,
                               56, 7, 9, 64, 101}, 23);
  StubProduct product = {77, 1, 0};
  StubLayout of_a = {28, 512, 1024, 512, 3}, of_b = {29, 512, 2048, 512, 3}, of_d = {14, 1024, 2048, 1024, 3};
  results |= cublasLtMatmul(&handle, &product, &one, &a, &of_a, &b, &of_b, &zero, &c, &of_d, &c, &of_d, NULL, NULL, 0,
                            stub_stream(4));
  stub_cublas_result(13);
  int failed = cublasSgemm_v2(&handle, 0, 0, 1, 1, 1, &one, &a, 4, &b, 4, &zero, &c, 4);
  until_idle();
  printf("{\"differ\":%d,\"results\":%d,\"failed\":%d,\"calls\":%llu}\n", differ, results, failed,
         (unsigned long long)stub_products());
}

void many_products(void) {
  StubHandle handle = {stub_stream(3)};
  for (int i = 0; i < 4000; i++) cublasSgemm_v2(&handle, 0, 0, i % 8, 1, 1, &one, &a, 4, &b, 4, &zero, &c, 4);
  until_idle();
  printf("{\"calls\":%llu}\n", (unsigned long long)stub_products());
}
