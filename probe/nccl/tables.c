/* Communicators, connections and names: added once, looked up often. Additions are behind a lock; lookups of what is there
 * go over hashed indices in the process' own memory and take none. */
#include <pthread.h>
#include <string.h>
#include "within.h"

enum { CONNECTION_PLACES = 16384, NAME_PLACES = 2048 };
enum { COMPLETE = 2, DESTROYED = 1 };

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
/* Index + 1; 0 is free. Twice and more the capacity of the tables, so a walk always ends at a free place. */
static _Atomic uint16_t connection_places[CONNECTION_PLACES];
static _Atomic uint16_t name_places[NAME_PLACES];

void fl_tables_lock(void) {
  pthread_mutex_lock(&adding);
}

void fl_tables_unlock(void) {
  pthread_mutex_unlock(&adding);
}

void fl_tables_forget(void) {
  for (int i = 0; i < CONNECTION_PLACES; i++) atomic_store_explicit(&connection_places[i], 0, memory_order_relaxed);
  for (int i = 0; i < NAME_PLACES; i++) atomic_store_explicit(&name_places[i], 0, memory_order_relaxed);
}

static void count_full(FlHeader *ring) {
  atomic_fetch_add_explicit(&ring->tablesFull, 1, memory_order_relaxed);
}

static void copy_text(char *to, size_t bytes, const char *text) {
  if (text == NULL) text = "";
  size_t length = strnlen(text, bytes - 1);
  /* Cut between characters: RING.md promises UTF-8. */
  if (text[length] != '\0')
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  memcpy(to, text, length);
  to[length] = '\0';
}

static FlComm *find_comm(FlHeader *ring, uint32_t count, uint64_t id, int32_t rank, uint64_t pointer) {
  /* From the newest: one that was destroyed and made again has the same name. */
  for (uint32_t i = count; i-- > 0;) {
    FlComm *comm = fl_comm_at(ring, (uint16_t)i);
    if (comm->id == id && comm->rank == rank && comm->pointer == pointer)
      return (atomic_load_explicit(&comm->flags, memory_order_relaxed) & DESTROYED) != 0 ? NULL : comm;
  }
  return NULL;
}

uint16_t fl_comm(FlHeader *ring, uint64_t id, int32_t rank, int32_t size, int32_t nodes, const char *name,
                 uint64_t pointer) {
  uint16_t index = FL_NONE;
  pthread_mutex_lock(&adding);
  uint32_t count = atomic_load_explicit(&ring->commCount, memory_order_relaxed);
  FlComm *comm = find_comm(ring, count, id, rank, pointer);
  if (comm != NULL) {
    index = (uint16_t)(comm - fl_comm_at(ring, 0));
  } else if (count < FL_COMMS) {
    index = (uint16_t)count;
    comm = fl_comm_at(ring, index);
    comm->id = id;
    comm->rank = rank;
    comm->size = size;
    comm->nodes = nodes;
    comm->madeNs = fl_now();
    comm->pointer = pointer;
    copy_text(comm->name, sizeof comm->name, name);
    atomic_store_explicit(&comm->flags, COMPLETE, memory_order_release);
    atomic_store_explicit(&ring->commCount, count + 1, memory_order_release);
  } else {
    count_full(ring);
  }
  pthread_mutex_unlock(&adding);
  return index;
}

static uint32_t mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return (uint32_t)(key >> 32);
}

/* Where the connection is, or the free place where its walk ends. */
static _Atomic uint16_t *find_connection(FlHeader *ring, uint16_t comm, uint8_t channel, bool isSend, int32_t peer) {
  uint64_t key = (uint64_t)(uint32_t)peer << 32 | (uint64_t)comm << 16 | (uint64_t)channel << 1 | isSend;
  uint32_t first = mix(key);
  for (uint32_t at = first;; at++) {
    _Atomic uint16_t *place = &connection_places[at % CONNECTION_PLACES];
    uint16_t found = atomic_load_explicit(place, memory_order_acquire);
    /* Never full, except where the ring was truncated again and again: then any will do. */
    if (found == 0 || at - first == CONNECTION_PLACES) return place;
    const FlConnection *connection = fl_connection_at(ring, found - 1);
    if (connection->comm == comm && connection->channel == channel && connection->isSend == isSend &&
        connection->peer == peer)
      return place;
  }
}

int32_t fl_connection(FlHeader *ring, uint16_t comm, uint8_t channel, bool isSend, int32_t peer) {
  _Atomic uint16_t *place = find_connection(ring, comm, channel, isSend, peer);
  int32_t index = atomic_load_explicit(place, memory_order_acquire) - 1;
  if (index >= 0) return index;
  pthread_mutex_lock(&adding);
  place = find_connection(ring, comm, channel, isSend, peer);
  index = atomic_load_explicit(place, memory_order_relaxed) - 1;
  if (index < 0) {
    uint32_t count = atomic_load_explicit(&ring->connectionCount, memory_order_relaxed);
    if (count < FL_CONNECTIONS) {
      index = (int32_t)count;
      FlConnection *connection = fl_connection_at(ring, index);
      connection->comm = comm;
      connection->channel = channel;
      connection->isSend = isSend;
      connection->peer = peer;
      atomic_store_explicit(place, (uint16_t)(index + 1), memory_order_release);
      atomic_store_explicit(&ring->connectionCount, count + 1, memory_order_release);
    } else {
      count_full(ring);
    }
  }
  pthread_mutex_unlock(&adding);
  return index;
}

static char *name_at(FlHeader *ring, uint32_t index) {
  return (char *)ring + FL_NAMES_AT + (size_t)index * FL_NAME_BYTES;
}

static _Atomic uint16_t *find_name(FlHeader *ring, const char *name) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *at = name; *at != '\0'; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
  uint32_t first = mix(hash);
  for (uint32_t at = first;; at++) {
    _Atomic uint16_t *place = &name_places[at % NAME_PLACES];
    uint16_t found = atomic_load_explicit(place, memory_order_acquire);
    if (found == 0 || at - first == NAME_PLACES || strcmp(name_at(ring, found - 1u), name) == 0) return place;
  }
}

uint16_t fl_name(FlHeader *ring, const char *name) {
  char cut[FL_NAME_BYTES];
  copy_text(cut, sizeof cut, name);
  uint16_t found = atomic_load_explicit(find_name(ring, cut), memory_order_acquire);
  if (found != 0) return (uint16_t)(found - 1);
  uint16_t index = FL_NONE;
  pthread_mutex_lock(&adding);
  _Atomic uint16_t *place = find_name(ring, cut);
  found = atomic_load_explicit(place, memory_order_relaxed);
  uint32_t count = atomic_load_explicit(&ring->nameCount, memory_order_relaxed);
  if (found != 0) {
    index = (uint16_t)(found - 1);
  } else if (count < FL_NAMES) {
    index = (uint16_t)count;
    memcpy(name_at(ring, count), cut, sizeof cut);
    atomic_store_explicit(place, (uint16_t)(index + 1), memory_order_release);
    atomic_store_explicit(&ring->nameCount, count + 1, memory_order_release);
  } else {
    count_full(ring);
  }
  pthread_mutex_unlock(&adding);
  return index;
}
