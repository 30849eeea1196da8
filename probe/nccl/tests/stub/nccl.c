/* Plays libnccl.so.2: every operator is a kernel of so many nanoseconds as it has elements. */
#include <stdlib.h>
#include "stub.h"

typedef struct Comm {
  int rank, size;
} Comm;
typedef struct {
  void *stream;
  size_t count;
} Waiting;

static _Atomic int result_wanted;
static _Atomic uint64_t calls;
static _Thread_local int depth;
static _Thread_local Waiting waiting[4096];
static _Thread_local int waits;
/* Newer versions hand a communicator out when the group ends. */
static _Thread_local struct {
  void **to;
  Comm *comm;
} births[64];
static _Thread_local int births_count;

void stub_nccl_result(int result) {
  result_wanted = result;
}
uint64_t stub_nccl_calls(void) {
  return calls;
}

static int operate(size_t count, void *stream) {
  calls++;
  if (result_wanted != 0) return result_wanted;
  if (depth > 0 && waits < 4096) waiting[waits++] = (Waiting){stream, count};
  else stub_launch(stream, count);
  return 0;
}

int ncclAllReduce(const void *from, void *to, size_t count, int dtype, int op, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclAllGather(const void *from, void *to, size_t count, int dtype, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclReduceScatter(const void *from, void *to, size_t count, int dtype, int op, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclBroadcast(const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream) {
  return operate(count, stream);
}
/* As the real one does, through the exported function: the job called once. */
int ncclBcast(void *buffer, size_t count, int dtype, int root, void *comm, void *stream) {
  return ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream);
}
int ncclReduce(const void *from, void *to, size_t count, int dtype, int op, int root, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclAlltoAll(const void *from, void *to, size_t count, int dtype, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclGather(const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclScatter(const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclSend(const void *from, size_t count, int dtype, int peer, void *comm, void *stream) {
  return operate(count, stream);
}
int ncclRecv(void *to, size_t count, int dtype, int peer, void *comm, void *stream) {
  return operate(count, stream);
}

int ncclGroupStart(void) {
  depth++;
  return 0;
}
static int end(int launches) {
  if (depth == 0) return 5;
  if (--depth > 0) return 0;
  for (int i = 0; i < waits && launches; i++) stub_launch(waiting[i].stream, waiting[i].count);
  for (int i = 0; i < births_count; i++) *births[i].to = births[i].comm;
  waits = births_count = 0;
  return result_wanted;
}
int ncclGroupEnd(void) {
  return end(1);
}
int ncclGroupSimulateEnd(void *info) {
  return end(0);
}

static int make(void **to, int rank, int size) {
  if (result_wanted != 0 && result_wanted != 7) return result_wanted;
  Comm *comm = malloc(sizeof *comm);
  *comm = (Comm){rank, size};
  if (depth == 0) {
    *to = comm;
  } else {
    births[births_count].to = to;
    births[births_count++].comm = comm;
  }
  return result_wanted;
}
int ncclCommInitRank(void **comm, int size, UniqueId id, int rank) {
  return make(comm, rank, size);
}
int ncclCommInitRankConfig(void **comm, int size, UniqueId id, int rank, void *config) {
  return make(comm, rank, size);
}
int ncclCommInitRankScalable(void **comm, int size, int rank, int count, UniqueId *ids, void *config) {
  return make(comm, rank, size);
}
int ncclCommInitAll(void **comms, int count, const int *devices) {
  for (int i = 0; i < count; i++) make(&comms[i], i, count);
  return result_wanted;
}
int ncclCommSplit(void *comm, int colour, int key, void **child, void *config) {
  const Comm *parent = comm;
  *child = NULL;
  return colour < 0 ? result_wanted : make(child, parent->rank / 2, parent->size / 2);
}
int ncclCommShrink(void *comm, int *excluded, int count, void **child, void *config, int flags) {
  const Comm *parent = comm;
  return make(child, parent->rank, parent->size - count);
}
int ncclCommFinalize(void *comm) {
  return result_wanted;
}
int ncclCommDestroy(void *comm) {
  free(comm);
  return result_wanted;
}
int ncclCommAbort(void *comm) {
  free(comm);
  return result_wanted;
}
/* One that is still being made answers no questions. */
int ncclCommUserRank(const void *comm, int *rank) {
  *rank = ((const Comm *)comm)->rank;
  return result_wanted == 7 ? 7 : 0;
}
int ncclCommCount(const void *comm, int *size) {
  *size = ((const Comm *)comm)->size;
  return result_wanted == 7 ? 7 : 0;
}
int ncclCommCuDevice(const void *comm, int *device) {
  *device = 3;
  return 0;
}
int ncclGetVersion(int *version) {
  *version = 22809;
  return 0;
}
