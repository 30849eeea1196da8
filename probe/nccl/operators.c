/* One collective, send or receive: its record before the call, because the call itself may never return. */
#include "shim.h"

bool fl_shim_records(void) {
  const FlSettings *settings = fl_settings();
  if (settings->isOff) return false;
  return settings->besidesPlugin || !atomic_load_explicit(&fl_plugin_active, memory_order_relaxed);
}

static uint32_t next_number(FlHeader *ring, uint16_t index, uint8_t kind) {
  if (index == FL_NONE) return 0;
  FlComm *comm = fl_comm_at(ring, index);
  _Atomic uint64_t *count = kind == FL_P2P ? &comm->p2ps : &comm->collectives;
  return (uint32_t)(atomic_fetch_add_explicit(count, 1, memory_order_relaxed) + 1);
}

void fl_operator_begin(FlCall *call, const FlOperator *what) {
  FlThread *thread = fl_thread();
  *call = (FlCall){.ring = NULL, .ticket = UINT64_MAX, .inGroup = thread->depth > 0};
  if (thread->inside++ > 0 || fl_settings()->isOff) return;
  FlHeader *ring = fl_ring();
  if (ring == NULL) return;
  bool held = call->inGroup ? thread->held : fl_trap(ring);
  if (!fl_shim_records()) return;

  uint16_t index = fl_comm_index(ring, what->comm);
  call->ring = ring;
  FlRecord record = {
      .kind = what->kind,
      .func = what->func,
      .dtype = what->dtype < 0 || what->dtype > 254 ? 255 : (uint8_t)what->dtype,
      .flags = (uint8_t)(FL_SHIM | (held ? FL_HELD : 0)),
      .group = index,
      .a = what->elements,
      .b = next_number(ring, index, what->kind),
      .c = what->peer,
      .issuedNs = call->issuedNs = fl_now(),
  };
  call->ticket = fl_append(ring, &record);
  if (!call->inGroup) call->timing = fl_timing_begin(what->stream, &call->flags);
  else if (!fl_group_add(thread, call->ticket, call->issuedNs, what->stream)) call->flags |= FL_UNTIMED;
}

void fl_operator_end(FlCall *call, int result) {
  fl_thread()->inside--;
  if (call->ring == NULL) return;
  bool failed = result != FL_NCCL_SUCCESS && result != FL_NCCL_IN_PROGRESS;
  /* The end of the group writes the rest. */
  if (call->inGroup && !failed && (call->flags & FL_UNTIMED) == 0) return;
  /* A call still in progress has launched nothing yet: an event now would end before it begins. */
  call->flags |= fl_timing_end(&call->timing, result == FL_NCCL_SUCCESS);
  if (failed) call->flags |= FL_FAILED | FL_UNTIMED;
  uint64_t tookNs = fl_now() - call->issuedNs;
  FlRecord *record = fl_open(call->ring, call->ticket);
  if (record != NULL) {
    record->flags |= call->flags;
    record->e = tookNs > UINT32_MAX ? UINT32_MAX : (uint32_t)tookNs;
    fl_close(record, call->ticket);
  }
  if (call->timing != NULL) fl_timing_submit_one(call->timing, call->ring, call->ticket, call->issuedNs);
}
