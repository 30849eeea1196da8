/* Shapes, types and layouts of a matrix product, as its library hands them over. */
#include "kernels.h"

typedef struct {
  int number;
  uint8_t nccl, bytes;
} Type;
static const Type types[] = {
#define LIBRARY(...)
#define PRODUCT(...)
#define TYPE(number, nccl, bytes) {number, nccl, bytes},
#include "intercepted.def"
#undef TYPE
#undef PRODUCT
#undef LIBRARY
};

static const Type *type_of(int number) {
  static const Type unknown = {NONE, 255, 0};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].number == number) return &types[i];
  return &unknown;
}

/* cuBLAS numbers "transposed" and "conjugate" 1 and 2; the libraries of AMD, after the old BLAS, 112 and 113. */
static bool is_transposed(uint64_t operation) {
  return operation == 1 || operation == 2 || operation == 112 || operation == 113;
}

static uint64_t integer(const uintptr_t *arguments, uint8_t place, bool wide) {
  if (place == 0) return 0;
  /* The upper half of the register is not the caller's word where the argument is an int. */
  return wide ? arguments[place] : (uint32_t)arguments[place];
}

static int type_at(const FlProduct *product, const uintptr_t *arguments, uint8_t place) {
  return place == 0 ? product->type : (int)(uint32_t)arguments[place];
}

static void read_arguments(const FlProduct *product, const uintptr_t *arguments, FlShape *shape) {
  *shape = (FlShape){
      .m = integer(arguments, product->m, product->wide),
      .n = integer(arguments, product->n, product->wide),
      .k = integer(arguments, product->k, product->wide),
      .leading = {integer(arguments, product->lda, product->wide), integer(arguments, product->ldb, product->wide),
                  integer(arguments, product->ldc, product->wide)},
      .types = {type_at(product, arguments, product->typeA), type_at(product, arguments, product->typeB),
                type_at(product, arguments, product->typeC)},
      .batch = product->batch == 0 ? 1 : (int)integer(arguments, product->batch, false),
      .compute = product->compute == 0 ? product->computeType : (int)integer(arguments, product->compute, false),
      .transA = is_transposed(integer(arguments, product->transA, false)),
      .transB = is_transposed(integer(arguments, product->transB, false)),
  };
}

typedef int (*GetAttribute)(uintptr_t object, int number, void *value, size_t bytes, size_t *written);

/* A function beside the product's own: where that one was found, this one is as well. */
void *fl_beside(FlProduct *product, FlReal *function) {
  return fl_real(function, atomic_load_explicit(&product->real.address, memory_order_relaxed));
}

/* An attribute of 4 or 8 bytes of an object of the library's; 0 where it has none. */
static uint64_t attribute(GetAttribute get, uintptr_t object, int number, size_t bytes) {
  uint64_t value = 0;
  size_t written;
  if (get == NULL || object == 0 || number == NONE) return 0;
  return get(object, number, &value, bytes, &written) == 0 ? value : 0;
}

static void read_objects(FlProduct *product, const uintptr_t *arguments, FlShape *shape) {
  FlLibrary *library = product->library;
  GetAttribute ofLayout = (GetAttribute)(uintptr_t)fl_beside(product, &library->getLayout);
  GetAttribute ofProduct = (GetAttribute)(uintptr_t)fl_beside(product, &library->getProduct);
  uintptr_t layouts[3] = {arguments[product->layoutA], arguments[product->layoutB], arguments[product->layoutC]};
  uintptr_t description = arguments[product->product];
  for (int i = 0; i < 3; i++) {
    shape->types[i] = (int)attribute(ofLayout, layouts[i], library->layoutType, 4);
    shape->leading[i] = attribute(ofLayout, layouts[i], library->layoutLeading, 8);
  }
  shape->transA = is_transposed(attribute(ofProduct, description, library->productTransA, 4));
  shape->transB = is_transposed(attribute(ofProduct, description, library->productTransB, 4));
  shape->compute = (int)attribute(ofProduct, description, library->productCompute, 4);
  shape->m = attribute(ofLayout, layouts[2], library->layoutRows, 8);
  shape->n = attribute(ofLayout, layouts[2], library->layoutColumns, 8);
  shape->k = attribute(ofLayout, layouts[0], shape->transA ? library->layoutRows : library->layoutColumns, 8);
  shape->batch = (int)attribute(ofLayout, layouts[2], library->layoutBatch, 4);
}

/* Tensor cores want rows of whole 16 bytes. */
static bool is_aligned(const FlShape *shape) {
  for (int i = 0; i < 3; i++)
    if (shape->leading[i] * type_of(shape->types[i])->bytes % 16 != 0) return false;
  return true;
}

void fl_shape_read(FlProduct *product, const uintptr_t *arguments, FlShape *shape) {
  if (product->library->getLayout.name != NULL) read_objects(product, arguments, shape);
  else read_arguments(product, arguments, shape);
  shape->isAligned = is_aligned(shape);
  shape->dtype = type_of(shape->types[0])->nccl;
}
