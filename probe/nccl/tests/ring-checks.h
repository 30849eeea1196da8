/* The ring itself, through ring.h: what its writers may do to each other. */
#ifndef RING_CHECKS_H
#define RING_CHECKS_H
#include <dlfcn.h>
#include <pthread.h>
#include "read-along.h"

typedef struct {
  FlHeader *(*ring)(void);
  uint64_t (*append)(FlHeader *ring, const FlRecord *record);
  FlRecord *(*open)(FlHeader *ring, uint64_t ticket);
  void (*close)(FlRecord *record, uint64_t ticket);
} Api;

static Api ring_api(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  Api api;
  const char *const names[] = {"fl_ring", "fl_append", "fl_open", "fl_close"};
  void *found[4];
  for (int i = 0; i < 4; i++)
    if (library == NULL || (found[i] = dlsym(library, names[i])) == NULL) exit(3);
  memcpy(&api, found, sizeof api);
  return api;
}

#define MUST(condition)                                       \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      return 5;                                               \
    }                                                         \
  } while (0)

/* One thread, a ring of 64: what two writers of one slot may do to each other. */
static int protocol(const char *library) {
  Api api = ring_api(library);
  FlHeader *ring = api.ring();
  MUST(ring != NULL && ring == api.ring() && ring->recordCount == 64);
  FlRecord record = {.kind = FL_COLLECTIVE, .a = 1};
  for (uint64_t ticket = 0; ticket < 64; ticket++) MUST(api.append(ring, &record) == ticket);
  const FlRecord *slots = (const FlRecord *)((const char *)ring + ring->recordsOffset);
  MUST(slots[3].stamp == 8 && slots[3].a == 1);

  FlRecord *open = api.open(ring, 3);
  MUST(open == &slots[3] && open->stamp == 9);
  for (uint64_t ticket = 64; ticket < 67; ticket++) MUST(api.append(ring, &record) == ticket);
  /* The slot is being written: the record that would lie there is lost, not mixed with it. */
  record.a = 2;
  MUST(api.append(ring, &record) == UINT64_MAX && ring->dropped == 1 && slots[3].a == 1);
  /* A second one who wants in gives up in the end. */
  MUST(api.open(ring, 3) == NULL && ring->lateUpdates == 1);
  open->endedNs = 5;
  api.close(open, 3);
  MUST(slots[3].stamp == 8 && slots[3].endedNs == 5);
  /* Overwritten meanwhile, or never there. */
  MUST(api.open(ring, 2) == NULL && api.open(ring, 1000) == NULL && api.open(ring, UINT64_MAX) == NULL);
  MUST(ring->lateUpdates == 3 && ring->head == 68);
  return 0;
}

/* Appends as fast as it goes into few slots, while another process reads them. */
static void *hammer_thread(void *argument) {
  const Api *api = argument;
  FlHeader *ring = api->ring();
  for (int i = 0; i < 3000000; i++) {
    FlRecord record = {.kind = FL_COLLECTIVE, .dtype = 9, .b = 1, .issuedNs = 1};
    static const uint8_t funcs[] = {1, 3, 5};
    record.c = i;
    record.a = count_of(i);
    record.func = funcs[i % 3];
    record.d = i % 2 == 0 ? 1u | 3u << 8 : 2u | 3u << 8;
    api->append(ring, &record);
  }
  return NULL;
}

static int hammer(const char *library) {
  int over;
  pid_t reader = start_reader(&over);
  Api api = ring_api(library);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, hammer_thread, &api);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return end_of_reader(reader, over);
}

#endif
