/* What intercepted.def says of libraries and their functions, and what of a call is worth a record. */
#ifndef FAULTLINE_KERNELS_H
#define FAULTLINE_KERNELS_H
#include "shim.h"

enum { FL_ARGUMENTS = 24, NONE = -1 };

typedef struct {
  const char *sonames[6];
  FlReal getStream, getLayout, getProduct;
  int layoutType, layoutRows, layoutColumns, layoutLeading, layoutBatch;
  int productCompute, productTransA, productTransB;
} FlLibrary;

typedef struct {
  FlReal real;
  FlLibrary *library;
  _Atomic uint64_t named; /* generation, and index of the name + 1 */
  uint8_t transA, transB, m, n, k, lda, ldb, ldc, batch, typeA, typeB, typeC, compute, stream;
  uint8_t layoutA, layoutB, layoutC, product;
  uint8_t type, computeType, wide;
} FlProduct;

/* What a record needs, whatever the library. */
typedef struct {
  uint64_t m, n, k, leading[3];
  int types[3]; /* the library's numbers */
  int batch, compute;
  bool transA, transB, isAligned;
  uint8_t dtype; /* NCCL's number of A's type; 255 unknown */
} FlShape;

/* shapes.c: out of the arguments, or of objects among them. */
void fl_shape_read(FlProduct *product, const uintptr_t *arguments, FlShape *shape);
/* A function of the library's beside the product's own. */
void *fl_beside(FlProduct *product, FlReal *function);

#endif
