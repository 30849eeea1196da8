/* Calls a profiler plug-in as NCCL does, in each version of the interface: same entry points, same order of events. */
#ifndef PRETEND_NCCL_H
#define PRETEND_NCCL_H
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "profiler-abi.h"

typedef struct {
  int version;
  const ProfilerV1 *v1; /* v1 to v3 */
  const ProfilerV4 *v4;
  const ProfilerV5 *v5; /* v5, v6 */
  int (*start)(void *context, void **handle, void *event);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, void *args);
  int (*finalize)(void *context);
} Plugin;

typedef struct {
  const Plugin *plugin;
  void *context;
  int mask, rank, size;
  uint64_t hash;
  char name[32];
} Comm;

/* What the application asks for. Coll-level events of AllGather and Broadcast are bytes, as in NCCL. */
typedef struct {
  int isP2p;
  const char *func, *dtype, *algo, *proto;
  uint8_t funcNumber, dtypeNumber, algoNumber, protoNumber; /* v1 */
  size_t count;
  int root; /* or peer */
  uint8_t channels;
  int isCaptured;
} Operator;

static inline void check(int result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "the plug-in failed: %s returned %d\n", what, result);
  exit(3);
}

static inline uint64_t host_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A GPU's timer starts elsewhere than the host's. */
static inline uint64_t gpu_ns(void) {
  return host_ns() + 777000000000000u;
}

static inline Plugin load(const char *path, int version) {
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *table = library == NULL ? NULL : dlsym(library, symbol);
  if (table == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  Plugin plugin = {.version = version};
#define TAKE(member)                          \
  do {                                        \
    plugin.member = table;                    \
    plugin.start = plugin.member->startEvent; \
    plugin.stop = plugin.member->stopEvent;   \
    plugin.record = plugin.member->recordEventState; \
    plugin.finalize = plugin.member->finalize;       \
  } while (0)
  if (version <= 3) TAKE(v1);
  else if (version == 4) TAKE(v4);
  else TAKE(v5);
#undef TAKE
  return plugin;
}

static inline void comm_init(Comm *comm, const Plugin *plugin, uint64_t hash, const char *name, int rank, int size) {
  *comm = (Comm){.plugin = plugin, .hash = hash, .rank = rank, .size = size, .mask = -1};
  snprintf(comm->name, sizeof comm->name, "%s", name);
  int result;
  if (plugin->version <= 3) result = plugin->v1->init(&comm->context, &comm->mask);
  else if (plugin->version == 4)
    result = plugin->v4->init(&comm->context, &comm->mask, comm->name, hash, 2, size, rank, NULL);
  else result = plugin->v5->init(&comm->context, hash, &comm->mask, comm->name, 2, size, rank, NULL);
  check(result, "init");
}

static inline void comm_finalize(Comm *comm) {
  if (comm->context != NULL) check(comm->plugin->finalize(comm->context), "finalize");
}

static inline void *start_event(Comm *comm, void *event) {
  void *handle = (void *)1; /* must always be written */
  check(comm->plugin->start(comm->context, &handle, event), "startEvent");
  if (handle == (void *)1) {
    fprintf(stderr, "startEvent left the handle as it was\n");
    exit(3);
  }
  return handle;
}

static inline void stop_event(Comm *comm, void *handle) {
  if (handle != NULL) check(comm->plugin->stop(handle), "stopEvent");
}

static inline int wants(const Comm *comm, int bits) {
  return comm->context != NULL && (comm->mask & bits) != 0;
}
#define ANY_TASK (EV_COLL | EV_P2P | EV_PROXY_OP | EV_PROXY_STEP | EV_KERNEL_CH)

static inline void *group_begin(Comm *comm) {
  if (comm->plugin->version < 5 || !wants(comm, ANY_TASK)) return NULL;
  EventV5 event = {.type = EV_GROUP_API};
  return start_event(comm, &event);
}

/* The application's call. */
static inline void *api_call(Comm *comm, const Operator *op, void *group) {
  if (comm->plugin->version < 5 || !wants(comm, ANY_TASK)) return NULL;
  EventV5 event = {.type = op->isP2p ? EV_P2P_API : EV_COLL_API, .parentObj = group};
  if (op->isP2p) {
    event.p2pApi.func = op->func;
    event.p2pApi.count = op->count;
    event.p2pApi.datatype = op->dtype;
    event.p2pApi.graphCaptured = op->isCaptured;
  } else {
    event.collApi.func = op->func;
    event.collApi.count = op->count;
    event.collApi.datatype = op->dtype;
    event.collApi.root = op->root;
    event.collApi.graphCaptured = op->isCaptured;
  }
  void *handle = start_event(comm, &event);
  stop_event(comm, handle);
  return handle;
}

#define FILL_TASK(e, op, comm, api)               \
  (e).type = (op)->isP2p ? EV_P2P : EV_COLL;      \
  (e).parentObj = (api);                          \
  (e).rank = (comm)->rank;                        \
  if ((op)->isP2p) {                              \
    (e).p2p.func = (op)->func;                    \
    (e).p2p.datatype = (op)->dtype;               \
    (e).p2p.count = (op)->count;                  \
    (e).p2p.peer = (op)->root;                    \
  } else {                                        \
    (e).coll.func = (op)->func;                   \
    (e).coll.datatype = (op)->dtype;              \
    (e).coll.count = (op)->count;                 \
    (e).coll.root = (op)->root;                   \
    (e).coll.algo = (op)->algo;                   \
    (e).coll.proto = (op)->proto;                 \
  }
#define FILL_NAME(e, op, comm)                                       \
  if ((op)->isP2p) {                                                 \
    (e).p2p.name = (comm)->name;                                     \
    (e).p2p.commHash = (comm)->hash;                                 \
  } else {                                                           \
    (e).coll.name = (comm)->name;                                    \
    (e).coll.commHash = (comm)->hash;                                \
    (e).coll.nMaxChannels = (uint8_t)((op)->channels + 2); /* most */ \
  }
#define FILL_CHANNELS(e, op)                               \
  if ((op)->isP2p) (e).p2p.nChannels = (op)->channels; \
  else (e).coll.nChannels = (op)->channels

/* What NCCL says after it has launched the kernel. */
static inline void *task_begin(Comm *comm, const Operator *op, void *api) {
  if (!wants(comm, ANY_TASK)) return NULL;
  switch (comm->plugin->version) {
    case 1: {
      EventV1 event = {0};
      FILL_TASK(event, &((struct { int isP2p; uint8_t func, dtype, algo, proto; size_t count; int root; }){
                           op->isP2p, op->funcNumber, op->dtypeNumber, op->algoNumber, op->protoNumber, op->count, op->root}),
                comm, api)
      FILL_NAME(event, op, comm)
      return start_event(comm, &event);
    }
    case 2: {
      EventV2 event = {0};
      FILL_TASK(event, op, comm, api)
      FILL_NAME(event, op, comm)
      return start_event(comm, &event);
    }
    case 3: {
      EventV3 event = {0};
      FILL_TASK(event, op, comm, api)
      FILL_NAME(event, op, comm)
      return start_event(comm, &event);
    }
    case 4: {
      EventV4 event = {0};
      FILL_TASK(event, op, comm, api)
      FILL_CHANNELS(event, op);
      return start_event(comm, &event);
    }
    default: {
      EventV5 event = {0};
      FILL_TASK(event, op, comm, api)
      FILL_CHANNELS(event, op);
      return start_event(comm, &event);
    }
  }
}

/* A member that lies at the same place in the events of all versions is set through the one that fits. */
#define WITH_EVENT(comm, code)                                               \
  do {                                                                       \
    if ((comm)->plugin->version == 1) { EventV1 event = {0}; code; }         \
    else if ((comm)->plugin->version == 2) { EventV2 event = {0}; code; }    \
    else if ((comm)->plugin->version == 3) { EventV3 event = {0}; code; }    \
    else if ((comm)->plugin->version == 4) { EventV4 event = {0}; code; }    \
    else { EventV5 event = {0}; code; }                                      \
  } while (0)

static inline void *proxy_op_begin(Comm *comm, void *task, pid_t pid, uint8_t channel, int isSend, int peer) {
  if (!wants(comm, EV_PROXY_OP | EV_PROXY_STEP)) return NULL;
  void *handle = NULL;
  WITH_EVENT(comm, {
    event.type = EV_PROXY_OP;
    event.parentObj = task;
    event.proxyOp.pid = pid;
    event.proxyOp.channelId = channel;
    event.proxyOp.peer = peer;
    event.proxyOp.isSend = isSend;
    handle = start_event(comm, &event);
  });
  return handle;
}

static inline void *step_begin(Comm *comm, void *op, int step) {
  if (!wants(comm, EV_PROXY_STEP)) return NULL;
  void *handle = NULL;
  WITH_EVENT(comm, {
    event.type = EV_PROXY_STEP;
    event.parentObj = op;
    event.proxyStep.step = step;
    handle = start_event(comm, &event);
  });
  return handle;
}

static inline void step_state(Comm *comm, void *step, int state, size_t bytes) {
  if (step == NULL) return;
  StateArgsV4 args = {.proxyStep = {bytes}};
  check(comm->plugin->record(step, state, comm->plugin->version >= 4 ? &args : NULL), "recordEventState");
}

static inline void *kernel_begin(Comm *comm, void *task, uint8_t channel, uint64_t gpuNs) {
  if (comm->plugin->version < 3 || !wants(comm, EV_KERNEL_CH)) return NULL;
  if (comm->plugin->version == 3) {
    EventV3 event = {.type = EV_KERNEL_CH, .parentObj = task};
    event.kernelCh.channelId = channel;
    return start_event(comm, &event);
  }
  if (comm->plugin->version == 4) {
    EventV4 event = {.type = EV_KERNEL_CH, .parentObj = task};
    event.kernelCh = (EvKernelCh){channel, gpuNs};
    return start_event(comm, &event);
  }
  EventV5 event = {.type = EV_KERNEL_CH, .parentObj = task};
  event.kernelCh = (EvKernelCh){channel, gpuNs};
  return start_event(comm, &event);
}

static inline void kernel_end(Comm *comm, void *kernel, uint64_t gpuNs) {
  if (kernel == NULL) return;
  StateArgsV4 args = {.kernelCh = {gpuNs}};
  if (comm->plugin->version >= 4) check(comm->plugin->record(kernel, ST_KERNEL_CH_STOP, &args), "recordEventState");
  stop_event(comm, kernel);
}

/* One channel's work of an operator, as the proxy's thread tells of it, from begin to end. */
static inline void channel_work(Comm *comm, void *task, uint8_t channel, int peer, int steps, size_t bytes) {
  void *kernel = kernel_begin(comm, task, channel, gpu_ns());
  for (int isSend = 0; isSend < 2; isSend++) {
    void *op = proxy_op_begin(comm, task, getpid(), channel, isSend, peer);
    for (int s = 0; s < steps; s++) {
      void *step = step_begin(comm, op, s);
      /* A receive that the network refuses is started anew. */
      if (!isSend && s % 3 == 0) step = step_begin(comm, op, s);
      if (isSend) {
        step_state(comm, step, ST_SEND_GPU_WAIT, 0);
        if (comm->plugin->version >= 4) step_state(comm, step, ST_SEND_PEER_WAIT, 0);
        step_state(comm, step, ST_SEND_WAIT, bytes);
      } else {
        step_state(comm, step, ST_RECV_WAIT, 0);
        step_state(comm, step, ST_RECV_FLUSH_WAIT, bytes);
        step_state(comm, step, ST_RECV_GPU_WAIT, bytes);
      }
      stop_event(comm, step);
    }
    stop_event(comm, op);
  }
  kernel_end(comm, kernel, gpu_ns());
}

#endif
