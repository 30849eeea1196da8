/* Communicators by the library's pointer: looked up at every call without a lock, added behind one. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "shim.h"

enum { PLACES = 2048, MOST = PLACES / 2, DESTROYED = 1 };

/* A place that was taken once is never free again, only another's: walks end at free places and must not be cut short. */
static FlKnownComm places[PLACES];
static uint32_t taken;
/* What a place holds whose communicator is gone. */
static char gone;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static uint32_t place_of(const void *comm) {
  return (uint32_t)(((uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15u) >> 40);
}

static FlKnownComm *find(const void *comm) {
  for (uint32_t at = place_of(comm);; at++) {
    FlKnownComm *place = &places[at % PLACES];
    const void *there = atomic_load_explicit(&place->pointer, memory_order_acquire);
    if (there == comm) return place;
    if (there == NULL) return NULL;
  }
}

/* Behind the lock: a place for a communicator that has none; NULL where all are taken. */
static FlKnownComm *make_place(const void *comm) {
  for (uint32_t at = place_of(comm);; at++) {
    FlKnownComm *place = &places[at % PLACES];
    const void *there = atomic_load_explicit(&place->pointer, memory_order_relaxed);
    if (there == &gone) return place;
    if (there == NULL) return taken < MOST ? (taken++, place) : NULL;
  }
}

static FlKnownComm *add(void *comm, uint64_t id) {
  FlKnownComm *place = find(comm);
  if (place == NULL) place = make_place(comm);
  if (place == NULL) return NULL;
  /* The index last of what a reader needs, the pointer last of all: a new communicator may have an old one's address. */
  atomic_store_explicit(&place->index, 0, memory_order_relaxed);
  atomic_store_explicit(&place->id, id, memory_order_relaxed);
  atomic_store_explicit(&place->children, 0, memory_order_relaxed);
  atomic_store_explicit(&place->pointer, comm, memory_order_release);
  return place;
}

static FlReal user_rank = {.name = "ncclCommUserRank", .libraries = fl_nccl_libraries};
static FlReal comm_count = {.name = "ncclCommCount", .libraries = fl_nccl_libraries};
static FlReal cuda_device = {.name = "ncclCommCuDevice", .libraries = fl_nccl_libraries};
static FlReal get_version = {.name = "ncclGetVersion", .libraries = fl_nccl_libraries};

/* What the library says of a communicator; -1 where it does not say. */
static int ask(FlReal *question, void *comm) {
  int (*real)(void *, int *) = (int (*)(void *, int *))(uintptr_t)fl_real(question, NULL);
  int answer = -1;
  if (real == NULL) return -1;
  FlThread *thread = fl_thread();
  thread->inside++;
  if (real(comm, &answer) != FL_NCCL_SUCCESS) answer = -1;
  thread->inside--;
  return answer;
}

static void register_in(FlHeader *ring, FlKnownComm *place, void *comm, int rank, int size) {
  fl_sign(ring, comm, "nccl-shim");
  uint64_t id = atomic_load_explicit(&place->id, memory_order_relaxed);
  uint16_t index = fl_comm(ring, id, rank, size, 0, "", (uint64_t)(uintptr_t)comm);
  atomic_store_explicit(&place->index, (uint32_t)index + 1, memory_order_release);
}

void fl_comm_made(void *comm, uint64_t id, int rank, int size, bool isReady) {
  FlHeader *ring = fl_ring();
  if (comm == NULL || ring == NULL) return;
  /* One that is still being made answers no questions: its first operator asks again. */
  if (rank < 0 && isReady) rank = ask(&user_rank, comm), size = ask(&comm_count, comm);
  pthread_mutex_lock(&adding);
  FlKnownComm *place = add(comm, id);
  if (place != NULL && rank >= 0) register_in(ring, place, comm, rank, size);
  pthread_mutex_unlock(&adding);
}

static uint16_t __attribute__((noinline)) meet(FlHeader *ring, void *comm) {
  int rank = ask(&user_rank, comm), size = ask(&comm_count, comm);
  uint32_t index = 0;
  pthread_mutex_lock(&adding);
  FlKnownComm *place = find(comm);
  /* Made by a call that we do not stand before: nobody else can know it under the same number. */
  if (place == NULL) place = add(comm, fl_id_within_process((uint64_t)(uintptr_t)comm));
  if (place != NULL && rank >= 0 && atomic_load_explicit(&place->index, memory_order_relaxed) == 0)
    register_in(ring, place, comm, rank, size);
  if (place != NULL) index = atomic_load_explicit(&place->index, memory_order_relaxed);
  pthread_mutex_unlock(&adding);
  return index == 0 ? FL_NONE : (uint16_t)(index - 1);
}

uint16_t fl_comm_index(FlHeader *ring, void *comm) {
  if (comm == NULL) return FL_NONE;
  FlKnownComm *place = find(comm);
  uint32_t index = place == NULL ? 0 : atomic_load_explicit(&place->index, memory_order_acquire);
  return __builtin_expect(index != 0, 1) ? (uint16_t)(index - 1) : meet(ring, comm);
}

uint64_t fl_comm_id(void *comm) {
  FlKnownComm *place = find(comm);
  return place == NULL ? fl_id_within_process((uint64_t)(uintptr_t)comm) : atomic_load(&place->id);
}

uint32_t fl_comm_next_child(void *comm) {
  FlKnownComm *place = find(comm);
  return place == NULL ? 0 : atomic_fetch_add(&place->children, 1);
}

void fl_comm_gone(void *comm) {
  FlHeader *ring = fl_ring();
  if (ring == NULL || comm == NULL) return;
  pthread_mutex_lock(&adding);
  FlKnownComm *place = find(comm);
  uint32_t index = place == NULL ? 0 : atomic_load_explicit(&place->index, memory_order_relaxed);
  if (index != 0 && index - 1 != FL_NONE)
    atomic_fetch_or_explicit(&fl_comm_at(ring, (uint16_t)(index - 1))->flags, DESTROYED, memory_order_release);
  if (place != NULL) atomic_store_explicit(&place->pointer, &gone, memory_order_release);
  pthread_mutex_unlock(&adding);
}

void fl_comms_forget(void) {
  for (int i = 0; i < PLACES; i++) atomic_store_explicit(&places[i].pointer, NULL, memory_order_relaxed);
  taken = 0;
  /* Another thread of the parent may have held it. */
  pthread_mutex_init(&adding, NULL);
}

/* "NCCL 2.28.9": NCCL numbers versions up to 2.8 with another factor. */
static void name_library(char *to, size_t bytes) {
  int (*real)(int *) = (int (*)(int *))(uintptr_t)fl_real(&get_version, NULL);
  int code = 0;
  if (real == NULL || real(&code) != FL_NCCL_SUCCESS || code <= 0) return;
  int major = code / (code < 10000 ? 1000 : 10000);
  snprintf(to, bytes, "NCCL %d.%d.%d", major, code / 100 % (code < 10000 ? 10 : 100), code % 100);
}

void fl_sign(FlHeader *ring, void *comm, const char *source) {
  static pthread_mutex_t signing = PTHREAD_MUTEX_INITIALIZER;
  if (atomic_load_explicit(&fl_plugin_active, memory_order_relaxed)) return;
  /* Held for a few stores, and asked for when a communicator or a kind of product is new; still, nobody waits for it. */
  if (pthread_mutex_trylock(&signing) != 0) return;
  bool isFree = ring->source[0] == '\0' || (comm != NULL && strcmp(ring->source, "kernels") == 0);
  if (isFree) snprintf(ring->source, sizeof ring->source, "%s", source);
  if (isFree && comm != NULL) {
    if (ring->library[0] == '\0') name_library(ring->library, sizeof ring->library);
    if (ring->gpu < 0) ring->gpu = ask(&cuda_device, comm);
  }
  pthread_mutex_unlock(&signing);
}
