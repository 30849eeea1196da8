/* The calls of NCCL, and of libraries that speak like it, that we stand before (LD_PRELOAD). Each goes on to the library with
 * the same arguments and gives back the same result; beside it, the ring gets a record. nccl.h is not needed: handles are
 * pointers, enumerations are ints. */
#include "shim.h"

typedef struct {
  char internal[128];
} NcclUniqueId;

/* `real`, the library's own function. Nothing else can be answered where there is no library to call. */
#define REAL(function, ...)                                                                \
  static FlReal function_##function = {.name = #function, .libraries = fl_nccl_libraries}; \
  typedef int (*Function)(__VA_ARGS__);                                                    \
  Function real = (Function)(uintptr_t)fl_real(&function_##function, FL_CALLER);           \
  if (real == NULL) return FL_NCCL_INTERNAL_ERROR
#define UNPACKED(...) __VA_ARGS__

/* One operator: its record, the call, its end. */
#define OPERATOR(function, parameters, arguments, ...) \
  FL_EXPORT int function parameters;                   \
  FL_EXPORT int function parameters {                  \
    REAL(function, UNPACKED parameters);               \
    FlOperator what = {__VA_ARGS__};                   \
    FlCall call;                                       \
    fl_operator_begin(&call, &what);                   \
    int result = real arguments;                       \
    fl_operator_end(&call, result);                    \
    return result;                                     \
  }
#define ON .comm = comm, .stream = stream, .dtype = dtype, .elements = count
#define COLLECTIVE(number) .kind = FL_COLLECTIVE, .func = (number), ON

OPERATOR(ncclAllReduce, (const void *from, void *to, size_t count, int dtype, int op, void *comm, void *stream),
         (from, to, count, dtype, op, comm, stream), COLLECTIVE(1))
OPERATOR(ncclAllGather, (const void *from, void *to, size_t count, int dtype, void *comm, void *stream),
         (from, to, count, dtype, comm, stream), COLLECTIVE(2))
OPERATOR(ncclReduceScatter, (const void *from, void *to, size_t count, int dtype, int op, void *comm, void *stream),
         (from, to, count, dtype, op, comm, stream), COLLECTIVE(3))
OPERATOR(ncclBroadcast, (const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream),
         (from, to, count, dtype, root, comm, stream), COLLECTIVE(4), .peer = root)
OPERATOR(ncclBcast, (void *buffer, size_t count, int dtype, int root, void *comm, void *stream),
         (buffer, count, dtype, root, comm, stream), COLLECTIVE(4), .peer = root)
OPERATOR(ncclReduce, (const void *from, void *to, size_t count, int dtype, int op, int root, void *comm, void *stream),
         (from, to, count, dtype, op, root, comm, stream), COLLECTIVE(5), .peer = root)
OPERATOR(ncclAlltoAll, (const void *from, void *to, size_t count, int dtype, void *comm, void *stream),
         (from, to, count, dtype, comm, stream), COLLECTIVE(6))
/* As RCCL spells it. */
OPERATOR(ncclAllToAll, (const void *from, void *to, size_t count, int dtype, void *comm, void *stream),
         (from, to, count, dtype, comm, stream), COLLECTIVE(6))
OPERATOR(ncclGather, (const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream),
         (from, to, count, dtype, root, comm, stream), COLLECTIVE(7), .peer = root)
OPERATOR(ncclScatter, (const void *from, void *to, size_t count, int dtype, int root, void *comm, void *stream),
         (from, to, count, dtype, root, comm, stream), COLLECTIVE(8), .peer = root)
OPERATOR(ncclSend, (const void *from, size_t count, int dtype, int peer, void *comm, void *stream),
         (from, count, dtype, peer, comm, stream), .kind = FL_P2P, .func = 1, .peer = peer, ON)
OPERATOR(ncclRecv, (void *to, size_t count, int dtype, int peer, void *comm, void *stream),
         (to, count, dtype, peer, comm, stream), .kind = FL_P2P, .func = 2, .peer = peer, ON)

FL_EXPORT int ncclGroupStart(void);
FL_EXPORT int ncclGroupStart(void) {
  REAL(ncclGroupStart, void);
  FlThread *thread = fl_thread();
  return thread->inside > 0 ? real() : fl_group_start(real, thread);
}

static int end_without_argument(void *real) {
  return ((int (*)(void))(uintptr_t)real)();
}

FL_EXPORT int ncclGroupEnd(void);
FL_EXPORT int ncclGroupEnd(void) {
  REAL(ncclGroupEnd, void);
  FlThread *thread = fl_thread();
  if (thread->inside > 0) return real();
  return fl_group_end(end_without_argument, (void *)(uintptr_t)real, thread, false);
}

/* Ends a group and launches nothing: it asks how long it would take. */
FL_EXPORT int ncclGroupSimulateEnd(void *info);
FL_EXPORT int ncclGroupSimulateEnd(void *info) {
  REAL(ncclGroupSimulateEnd, void *);
  FlThread *thread = fl_thread();
  return thread->inside > 0 ? real(info) : fl_group_end(real, info, thread, true);
}

/* Calls the library; then `birth` tells of the communicator that it made, or will have made at the end of the group. */
#define MAKING(call, birth)                                         \
  do {                                                              \
    FlThread *thread = fl_thread();                                 \
    bool isTheJobs = thread->inside++ == 0;                         \
    int result = call;                                              \
    thread->inside--;                                               \
    if (isTheJobs) fl_group_birth(thread, &(FlBirth)birth, result); \
    return result;                                                  \
  } while (0)
#define BIRTH(...) {__VA_ARGS__}

FL_EXPORT int ncclCommInitRank(void **comm, int size, NcclUniqueId id, int rank);
FL_EXPORT int ncclCommInitRank(void **comm, int size, NcclUniqueId id, int rank) {
  REAL(ncclCommInitRank, void **, int, NcclUniqueId, int);
  MAKING(real(comm, size, id, rank), BIRTH(comm, fl_id_of_unique(&id, sizeof id), rank, size));
}

FL_EXPORT int ncclCommInitRankConfig(void **comm, int size, NcclUniqueId id, int rank, void *config);
FL_EXPORT int ncclCommInitRankConfig(void **comm, int size, NcclUniqueId id, int rank, void *config) {
  REAL(ncclCommInitRankConfig, void **, int, NcclUniqueId, int, void *);
  MAKING(real(comm, size, id, rank, config), BIRTH(comm, fl_id_of_unique(&id, sizeof id), rank, size));
}

FL_EXPORT int ncclCommInitRankScalable(void **comm, int size, int rank, int count, NcclUniqueId *ids, void *config);
FL_EXPORT int ncclCommInitRankScalable(void **comm, int size, int rank, int count, NcclUniqueId *ids, void *config) {
  REAL(ncclCommInitRankScalable, void **, int, int, int, NcclUniqueId *, void *);
  size_t bytes = ids == NULL || count < 0 ? 0 : (size_t)count * sizeof *ids;
  MAKING(real(comm, size, rank, count, ids, config), BIRTH(comm, fl_id_of_unique(ids, bytes), rank, size));
}

/* All members are in this process, and there is no unique id. */
FL_EXPORT int ncclCommInitAll(void **comms, int count, const int *devices);
FL_EXPORT int ncclCommInitAll(void **comms, int count, const int *devices) {
  REAL(ncclCommInitAll, void **, int, const int *);
  static _Atomic uint64_t cliques;
  FlThread *thread = fl_thread();
  bool isTheJobs = thread->inside++ == 0;
  int result = real(comms, count, devices);
  thread->inside--;
  if (!isTheJobs || comms == NULL) return result;
  uint64_t id = fl_id_within_process(atomic_fetch_add(&cliques, 1));
  for (int rank = 0; rank < count; rank++) fl_group_birth(thread, &(FlBirth){&comms[rank], id, rank, count}, result);
  return result;
}

/* Counted whatever comes of it, and whatever the colour: all members must come to the same number. */
FL_EXPORT int ncclCommSplit(void *comm, int colour, int key, void **child, void *config);
FL_EXPORT int ncclCommSplit(void *comm, int colour, int key, void **child, void *config) {
  REAL(ncclCommSplit, void *, int, int, void **, void *);
  uint64_t id = fl_id_of_split(fl_comm_id(comm), colour, fl_comm_next_child(comm));
  MAKING(real(comm, colour, key, child, config), BIRTH(child, id, -1, -1));
}

FL_EXPORT int ncclCommShrink(void *comm, int *excluded, int count, void **child, void *config, int flags);
FL_EXPORT int ncclCommShrink(void *comm, int *excluded, int count, void **child, void *config, int flags) {
  REAL(ncclCommShrink, void *, int *, int, void **, void *, int);
  uint64_t id = fl_id_of_shrink(fl_comm_id(comm), excluded, count, fl_comm_next_child(comm));
  MAKING(real(comm, excluded, count, child, config, flags), BIRTH(child, id, -1, -1));
}

/* Before the call: once it has returned, another communicator may have the same address. */
#define ENDING(function)                                              \
  FL_EXPORT int function(void *comm);                                 \
  FL_EXPORT int function(void *comm) {                                \
    REAL(function, void *);                                           \
    FlThread *thread = fl_thread();                                   \
    if (thread->inside == 0 && fl_shim_records()) fl_comm_gone(comm); \
    thread->inside++;                                                 \
    int result = real(comm);                                          \
    thread->inside--;                                                 \
    return result;                                                    \
  }
ENDING(ncclCommDestroy)
ENDING(ncclCommAbort)
/* Flushes what was issued: after it a communicator can only be destroyed. */
ENDING(ncclCommFinalize)
