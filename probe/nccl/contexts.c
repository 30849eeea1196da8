/* Contexts: a small table that is never freed. NCCL's pointer to a context is a number into it: in a proxy that works for
 * another process (PXN) NCCL hands over that process' number, which is looked up here without harm. */
#include "profiler.h"

Context fl_context_table[FL_CONTEXTS];

void *fl_context_open(FlHeader *ring, uint16_t comm, int version) {
  void *number = NULL;
  fl_tables_lock();
  for (unsigned i = 0; i < FL_CONTEXTS && number == NULL; i++) {
    Context *context = &fl_context_table[i];
    if (atomic_load_explicit(&context->ring, memory_order_relaxed) != NULL) continue;
    context->version = version;
    fl_gpu_clock_reset(&context->clock);
    atomic_store_explicit(&context->comm, comm, memory_order_relaxed);
    atomic_store_explicit(&context->ring, ring, memory_order_release);
    number = (void *)(FL_CONTEXT_BASE + i);
  }
  fl_tables_unlock();
  if (number == NULL) atomic_fetch_add_explicit(&ring->tablesFull, 1, memory_order_relaxed);
  return number;
}

void fl_context_close(void *number) {
  uintptr_t i = (uintptr_t)number - FL_CONTEXT_BASE;
  if (i < FL_CONTEXTS) atomic_store_explicit(&fl_context_table[i].ring, NULL, memory_order_release);
}
