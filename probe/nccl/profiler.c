/* The NCCL profiler plug-in (NCCL_PROFILER_PLUGIN): the tables that NCCL looks up, one for each version of the interface, and
 * what differs between them. NCCL is always told that all went well: a probe that fails is no reason to fail. */
#include <string.h>
#include "profiler-abi.h"
#include "profiler.h"

static void name_early_comm(Context *context, uint64_t id, int rank, const char *name) {
  if (atomic_load_explicit(&context->comm, memory_order_relaxed) != FL_NONE) return;
  FlHeader *ring = atomic_load_explicit(&context->ring, memory_order_relaxed);
  atomic_store_explicit(&context->comm, fl_comm(ring, id, rank, -1, -1, name, 0), memory_order_relaxed);
}

/* The numbers of NCCL 2.23, of its functions, algorithms and protocols. */
static uint8_t number_at(const uint8_t *numbers, size_t count, uint8_t index) {
  return index < count ? numbers[index] : 0;
}
static const uint8_t collectives_v1[] = {4, 5, 2, 3, 1};
static const uint8_t p2ps_v1[] = {0, 0, 0, 0, 0, 0, 1, 2};
static const uint8_t algorithms_v1[] = {2, 1, 3, 3, 4, 4};
static const uint8_t protocols_v1[] = {1, 2, 3};
#define NUMBER_AT(numbers, index) number_at(numbers, sizeof(numbers), index)

static uint8_t p2p_number(const char *word) {
  if (word == NULL) return 0;
  return strcmp(word, "Send") == 0 ? 1 : strcmp(word, "Recv") == 0 ? 2 : 0;
}

static Call collective(const char *func, const char *dtype, size_t count, int root) {
  return (Call){.kind = FL_COLLECTIVE, .func = fl_collective(func), .dtype = fl_dtype(dtype), .count = count, .root = root};
}

static Call p2p(const char *func, const char *dtype, size_t count, int peer) {
  return (Call){.kind = FL_P2P, .func = p2p_number(func), .dtype = fl_dtype(dtype), .count = count, .root = peer};
}

static void *proxy_op(Context *context, void *parent, const EvProxyOp *op) {
  return fl_proxy_op_started(context, parent, op->pid, op->channelId, op->isSend != 0, op->peer);
}

static int start_v1(void *number, void **handle, void *event) {
  const EventV1 *e = event;
  Context *context = fl_context(number);
  Call call;
  *handle = NULL;
  if (context == NULL) return 0;
  switch (e->type) {
    case EV_COLL:
      name_early_comm(context, e->coll.commHash, e->rank, e->coll.name);
      call = (Call){.kind = FL_COLLECTIVE,
                    .func = NUMBER_AT(collectives_v1, e->coll.func),
                    .dtype = e->coll.datatype,
                    .algorithm = NUMBER_AT(algorithms_v1, e->coll.algo),
                    .protocol = NUMBER_AT(protocols_v1, e->coll.proto),
                    .channels = e->coll.nMaxChannels,
                    .count = e->coll.count,
                    .root = e->coll.root};
      *handle = fl_task_started(context, e->parentObj, &call);
      break;
    case EV_P2P:
      name_early_comm(context, e->p2p.commHash, e->rank, e->p2p.name);
      call = (Call){.kind = FL_P2P,
                    .func = NUMBER_AT(p2ps_v1, e->p2p.func),
                    .dtype = e->p2p.datatype,
                    .count = e->p2p.count,
                    .root = e->p2p.peer};
      *handle = fl_task_started(context, e->parentObj, &call);
      break;
    case EV_PROXY_OP:
      *handle = proxy_op(context, e->parentObj, &e->proxyOp);
      break;
    case EV_PROXY_STEP:
      *handle = fl_proxy_step_started(e->parentObj, e->proxyStep.step);
      break;
  }
  return 0;
}

/* v2 and v3 differ in one member of coll, which moves what follows it. */
#define START_WITH_WORDS(VERSION)                                                                         \
  static int start_v##VERSION(void *number, void **handle, void *event) {                                 \
    const EventV##VERSION *e = event;                                                                     \
    Context *context = fl_context(number);                                                                \
    Call call;                                                                                            \
    *handle = NULL;                                                                                       \
    if (context == NULL) return 0;                                                                        \
    switch (e->type) {                                                                                    \
      case EV_COLL:                                                                                       \
        name_early_comm(context, e->coll.commHash, e->rank, e->coll.name);                                \
        call = collective(e->coll.func, e->coll.datatype, e->coll.count, e->coll.root);                   \
        call.algorithm = fl_algorithm(e->coll.algo);                                                      \
        call.protocol = fl_protocol(e->coll.proto);                                                       \
        call.channels = e->coll.nMaxChannels;                                                             \
        *handle = fl_task_started(context, e->parentObj, &call);                                          \
        break;                                                                                            \
      case EV_P2P:                                                                                        \
        name_early_comm(context, e->p2p.commHash, e->rank, e->p2p.name);                                  \
        call = p2p(e->p2p.func, e->p2p.datatype, e->p2p.count, e->p2p.peer);                              \
        *handle = fl_task_started(context, e->parentObj, &call);                                          \
        break;                                                                                            \
      case EV_PROXY_OP:                                                                                   \
        *handle = proxy_op(context, e->parentObj, &e->proxyOp);                                           \
        break;                                                                                            \
      case EV_PROXY_STEP:                                                                                 \
        *handle = fl_proxy_step_started(e->parentObj, e->proxyStep.step);                                 \
        break;                                                                                            \
      case EV_KERNEL_CH: /* v3, and never called in v2 */                                                 \
        *handle = fl_kernel_started(context, e->parentObj, 0);                                            \
        break;                                                                                            \
    }                                                                                                     \
    return 0;                                                                                             \
  }
START_WITH_WORDS(2)
START_WITH_WORDS(3)

static void *collective_v4(Context *context, void *parent, const EvCollV4 *coll) {
  Call call = {.kind = FL_COLLECTIVE};
  if (!fl_knows_call(parent)) call = collective(coll->func, coll->datatype, coll->count, coll->root);
  call.algorithm = fl_algorithm(coll->algo);
  call.protocol = fl_protocol(coll->proto);
  call.channels = coll->nChannels;
  return fl_task_started(context, parent, &call);
}

static void *p2p_v4(Context *context, void *parent, const EvP2pV4 *event) {
  Call call = p2p(event->func, event->datatype, event->count, event->peer);
  call.channels = event->nChannels;
  return fl_task_started(context, parent, &call);
}

static int start_v4(void *number, void **handle, void *event) {
  const EventV4 *e = event;
  Context *context = fl_context(number);
  *handle = NULL;
  if (context == NULL) return 0;
  switch (e->type) {
    case EV_COLL:
      *handle = collective_v4(context, e->parentObj, &e->coll);
      break;
    case EV_P2P:
      *handle = p2p_v4(context, e->parentObj, &e->p2p);
      break;
    case EV_PROXY_OP:
      *handle = proxy_op(context, e->parentObj, &e->proxyOp);
      break;
    case EV_PROXY_STEP:
      *handle = fl_proxy_step_started(e->parentObj, e->proxyStep.step);
      break;
    case EV_KERNEL_CH:
      *handle = fl_kernel_started(context, e->parentObj, e->kernelCh.pTimer);
      break;
  }
  return 0;
}

static int start_v5(void *number, void **handle, void *event) {
  const EventV5 *e = event;
  Context *context = fl_context(number);
  Call call;
  *handle = NULL;
  if (context == NULL) return 0;
  switch (e->type) {
    case EV_GROUP_API:
      *handle = fl_group_started();
      break;
    case EV_COLL_API:
      call = collective(e->collApi.func, e->collApi.datatype, e->collApi.count, e->collApi.root);
      if (e->collApi.graphCaptured) call.flags |= FL_CAPTURED;
      *handle = fl_call_started(context, &call);
      break;
    case EV_P2P_API: /* The peer comes with the task. */
      call = p2p(e->p2pApi.func, e->p2pApi.datatype, e->p2pApi.count, -1);
      if (e->p2pApi.graphCaptured) call.flags |= FL_CAPTURED;
      *handle = fl_call_started(context, &call);
      break;
    case EV_COLL:
      *handle = collective_v4(context, e->parentObj, &e->coll);
      break;
    case EV_P2P:
      *handle = p2p_v4(context, e->parentObj, &e->p2p);
      break;
    case EV_PROXY_OP:
      *handle = proxy_op(context, e->parentObj, &e->proxyOp);
      break;
    case EV_PROXY_STEP:
      *handle = fl_proxy_step_started(e->parentObj, e->proxyStep.step);
      break;
    case EV_KERNEL_CH:
      *handle = fl_kernel_started(context, e->parentObj, e->kernelCh.pTimer);
      break;
    case EV_CE_COLL: /* By the copy engines: no kernel tells when. */
      call = collective(e->ceColl.func, e->ceColl.datatype, e->ceColl.count, e->ceColl.root);
      *handle = fl_task_started(context, e->parentObj, &call);
      break;
  }
  return 0;
}

static int stop(void *handle) {
  fl_stopped(handle);
  return 0;
}

static bool is_step_state(int state) {
  return (state >= ST_SEND_GPU_WAIT && state <= ST_RECV_GPU_WAIT) || state == ST_SEND_PEER_WAIT;
}

static int record_v1(void *handle, int state, void *args) {
  (void)args;
  /* The size comes with the operation here, not with the step, and what it adds up over differs: not counted. */
  if (is_step_state(state)) fl_proxy_step_state(handle, state, 0);
  return 0;
}

static int record_v4(void *handle, int state, void *args) {
  const StateArgsV4 *a = args;
  if (state == ST_KERNEL_CH_STOP) fl_kernel_stopped(handle, a == NULL ? 0 : a->kernelCh.pTimer);
  else if (is_step_state(state)) fl_proxy_step_state(handle, state, a == NULL ? 0 : a->proxyStep.transSize);
  return 0;
}

#define EXPORT __attribute__((visibility("default")))
extern const ProfilerV1 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const ProfilerV4 ncclProfiler_v4;
extern const ProfilerV5 ncclProfiler_v5, ncclProfiler_v6;
EXPORT const ProfilerV1 ncclProfiler_v1 = {"Faultline", fl_init_v1, start_v1, stop, record_v1, fl_finalize};
EXPORT const ProfilerV1 ncclProfiler_v2 = {"Faultline", fl_init_v2, start_v2, stop, record_v1, fl_finalize};
EXPORT const ProfilerV1 ncclProfiler_v3 = {"Faultline", fl_init_v3, start_v3, stop, record_v1, fl_finalize};
EXPORT const ProfilerV4 ncclProfiler_v4 = {"Faultline", fl_init_v4, start_v4, stop, record_v4, fl_finalize};
EXPORT const ProfilerV5 ncclProfiler_v5 = {"Faultline", fl_init_v5, start_v5, stop, record_v4, fl_finalize};
EXPORT const ProfilerV5 ncclProfiler_v6 = {"Faultline", fl_init_v6, start_v5, stop, record_v4, fl_finalize};
