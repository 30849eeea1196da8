/* Handles. NCCL keeps what startEvent returns and hands it back as a child's parent, at times long after the operator was
 * done, at times (PXN) in another process. So a handle is no pointer but a number: three bits of what it is, and a record's
 * ticket or a connection. A ticket whose record was overwritten finds another stamp there and does nothing. */
#ifndef FAULTLINE_HANDLES_H
#define FAULTLINE_HANDLES_H
#include "profiler.h"

enum Tag { FL_CALL = 1, FL_CAPTURED_CALL, FL_COUNTED, FL_OPEN, FL_BY_PROXY, FL_CHANNEL, FL_PROXY };
/*              63..61  60     59..48      47..41  40           39              38..0
 * FL_CALL      tag     group  ticket ...
 * FL_CHANNEL   tag            context     ticket ...
 * FL_PROXY     tag     step   connection  serial  of a record  times a record  ticket (an operation), place (a step) */
enum { TAG_AT = 61, CONNECTION_AT = 48, CONTEXT_AT = 48, SERIAL_AT = 41, OF_RECORD_AT = 40, TIMES_RECORD_AT = 39 };
#define FL_TICKET (((uint64_t)1 << 60) - 1)
/* A call whose record was dropped: counted, and not to be counted again when NCCL launches it. */
#define FL_LOST FL_TICKET
#define FL_CHANNEL_TICKET (((uint64_t)1 << CONTEXT_AT) - 1)
#define FL_SHORT_TICKET (((uint64_t)1 << TIMES_RECORD_AT) - 1)
#define FL_STEP ((uint64_t)1 << 60)
#define FL_GROUP ((uint64_t)1 << 60 | (uint64_t)FL_CALL << TAG_AT)

static inline void *handle_of(enum Tag tag, uint64_t value) {
  return (void *)(uintptr_t)((uint64_t)tag << TAG_AT | value);
}
static inline uint64_t bits_of(const void *handle) {
  return (uint64_t)(uintptr_t)handle;
}
static inline enum Tag tag_of(const void *handle) {
  return (enum Tag)(bits_of(handle) >> TAG_AT);
}
static inline uint64_t ticket_of(const void *handle) {
  return bits_of(handle) & FL_TICKET;
}

/* profiler-events.c: a part of an operator begins or ends, a channel or an operation of the proxy. Within an open record. */
enum Part { FL_KERNEL_PART, FL_PROXY_PART };
void fl_part_started(FlRecord *record, uint64_t startedNs, uint8_t byGpu, bool isOpen);
/* One more part, which does not tell when the operator began; false where there are too many. */
bool fl_part_joined(FlRecord *record);
void fl_part_stopped(FlHeader *ring, FlRecord *record, uint64_t ticket, uint64_t endedNs, enum Part part, uint8_t byGpu);

/* proxy.c */
void fl_proxy_stopped(void *handle);

#endif
