/* Libraries that speak like NCCL, CUDA's driver and cuBLAS, and what a test may tell them. */
#ifndef FAULTLINE_STUB_H
#define FAULTLINE_STUB_H
#include <stddef.h>
#include <stdint.h>

/* CUDA: streams are any pointers; work on one ends after what was put there before. */
void stub_launch(void *stream, uint64_t ns);
/* From now on every function of the driver gives this result; 0 is well again. */
void stub_cuda_result(int result);
/* The stream is being captured into a graph. */
void stub_capture(void *stream, int captured);
/* What would have broken a capture: a question asked by a thread that is not relaxed while a stream is captured, or
 * anything recorded on a stream that is captured. */
int stub_broken_captures(void);
uint64_t stub_now(void);
int stub_idle(void);
int stub_events_recorded(void);
/* The context of streams that are used for the first time from now on. */
void stub_streams_context(void *context);
/* The calling thread has no context until it is told otherwise. */
void stub_lose_context(int isLost);
int cuCtxGetCurrent(void **context);
int cuEventRecord(void *event, void *stream);

/* NCCL. */
typedef struct {
  char internal[128];
} UniqueId;
void stub_nccl_result(int result);
uint64_t stub_nccl_calls(void);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclAllGather(const void *, void *, size_t, int, void *, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, void *, void *);
int ncclBcast(void *, size_t, int, int, void *, void *);
int ncclReduce(const void *, void *, size_t, int, int, int, void *, void *);
int ncclAlltoAll(const void *, void *, size_t, int, void *, void *);
int ncclGather(const void *, void *, size_t, int, int, void *, void *);
int ncclScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclGroupSimulateEnd(void *);
int ncclCommInitRank(void **, int, UniqueId, int);
int ncclCommInitRankConfig(void **, int, UniqueId, int, void *);
int ncclCommInitRankScalable(void **, int, int, int, UniqueId *, void *);
int ncclCommInitAll(void **, int, const int *);
int ncclCommSplit(void *, int, int, void **, void *);
int ncclCommShrink(void *, int *, int, void **, void *, int);
int ncclCommFinalize(void *);
int ncclCommDestroy(void *);
int ncclCommAbort(void *);
int ncclCommUserRank(const void *, int *);
int ncclCommCount(const void *, int *);
int ncclCommCuDevice(const void *, int *);
int ncclGetVersion(int *);

/* cuBLAS. */
typedef struct {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int batch;
} StubLayout;
typedef struct {
  int compute, transA, transB;
} StubProduct;
typedef struct {
  void *stream;
} StubHandle;
/* The words that the last function was called with, as many as it has. */
const uint64_t *stub_arguments(void);
void stub_cublas_result(int result);
uint64_t stub_products(void);
int cublasGetStream_v2(StubHandle *handle, void **stream);
int cublasSgemm_v2(StubHandle *, int, int, int, int, int, const float *, const void *, int, const void *, int, const float *,
                   void *, int);
int cublasGemmEx(StubHandle *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                 const void *, void *, int, int, int, int);
int cublasSgemmStridedBatched(StubHandle *, int, int, int, int, int, const float *, const void *, int, long long,
                              const void *, int, long long, const float *, void *, int, long long, int);
int cublasGemmStridedBatchedEx(StubHandle *, int, int, int, int, int, const void *, const void *, int, int, long long,
                               const void *, int, int, long long, const void *, void *, int, int, long long, int, int, int);
int cublasLtMatmul(StubHandle *, StubProduct *, const void *, const void *, StubLayout *, const void *, StubLayout *,
                   const void *, const void *, StubLayout *, void *, StubLayout *, const void *, void *, size_t, void *);
int cublasLtMatrixLayoutGetAttribute(const StubLayout *, int, void *, size_t, size_t *);
int cublasLtMatmulDescGetAttribute(const StubProduct *, int, void *, size_t, size_t *);

#endif
