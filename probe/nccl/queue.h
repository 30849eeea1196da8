/* A bounded queue of pointers for many writers and many readers without a lock (Vyukov's: each cell carries the number of
 * the turn that it is ready for). The training thread never waits in it: a full or empty queue is an answer. */
#ifndef FAULTLINE_QUEUE_H
#define FAULTLINE_QUEUE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  _Atomic uint64_t turn;
  void *item;
} FlCell;
typedef struct {
  FlCell *cells;
  uint64_t mask;
  char pad0[48];
  _Atomic uint64_t head; /* where the next one is put */
  char pad1[56];
  _Atomic uint64_t tail; /* where the next one is taken */
  char pad2[56];
} FlQueue;

/* `size` is a power of two. */
static inline bool fl_queue_make(FlQueue *queue, uint64_t size) {
  queue->cells = calloc(size, sizeof *queue->cells);
  if (queue->cells == NULL) return false;
  queue->mask = size - 1;
  for (uint64_t i = 0; i < size; i++) atomic_init(&queue->cells[i].turn, i);
  atomic_init(&queue->head, 0);
  atomic_init(&queue->tail, 0);
  return true;
}

static inline bool fl_queue_put(FlQueue *queue, void *item) {
  uint64_t at = atomic_load_explicit(&queue->head, memory_order_relaxed);
  for (;;) {
    FlCell *cell = &queue->cells[at & queue->mask];
    int64_t ahead = (int64_t)(atomic_load_explicit(&cell->turn, memory_order_acquire) - at);
    if (ahead < 0) return false;
    if (ahead > 0) {
      at = atomic_load_explicit(&queue->head, memory_order_relaxed);
    } else if (atomic_compare_exchange_weak_explicit(&queue->head, &at, at + 1, memory_order_relaxed,
                                                     memory_order_relaxed)) {
      cell->item = item;
      atomic_store_explicit(&cell->turn, at + 1, memory_order_release);
      return true;
    }
  }
}

static inline void *fl_queue_take(FlQueue *queue) {
  uint64_t at = atomic_load_explicit(&queue->tail, memory_order_relaxed);
  for (;;) {
    FlCell *cell = &queue->cells[at & queue->mask];
    int64_t ahead = (int64_t)(atomic_load_explicit(&cell->turn, memory_order_acquire) - (at + 1));
    if (ahead < 0) return NULL;
    if (ahead > 0) {
      at = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    } else if (atomic_compare_exchange_weak_explicit(&queue->tail, &at, at + 1, memory_order_relaxed,
                                                     memory_order_relaxed)) {
      void *item = cell->item;
      atomic_store_explicit(&cell->turn, at + queue->mask + 1, memory_order_release);
      return item;
    }
  }
}

#endif
