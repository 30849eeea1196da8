/* Where the GPU's clock stands on ours: an anchor is an event on an empty stream of our own, with our clock before and after.
 * A new one about once a second, because clocks drift, and because a driver tells spans as floats of milliseconds. */
#include "cuda.h"

enum { ANCHOR_NS = 1000000000, POOR_ANCHOR_NS = 20000000, POOR_SLACK_NS = 50000, OLD_SLACK_NS = 5000000 };
enum { SPIN_NS = 200000 };
/* How far two clocks may drift apart while an anchor ages: 50 ppm is what crystals promise. */
enum { DRIFT_PER = 20000 };

int fl_event_over(void *event) {
  int result = fl_driver.eventQuery(event);
  return result == FL_CUDA_SUCCESS ? 1 : result == FL_CUDA_NOT_READY ? 0 : -1;
}

bool fl_elapsed_ns(void *from, void *to, int64_t *ns) {
  float ms;
  if (fl_driver.eventElapsed(&ms, from, to) != FL_CUDA_SUCCESS) return false;
  *ns = (int64_t)((double)ms * 1e6);
  return true;
}

/* How wrong times by the anchor in use may be by now. */
static uint64_t aged(const FlContext *context, uint64_t now) {
  return context->slackNs + (now - context->takenNs) / DRIFT_PER;
}

/* Takes the anchor that has come back, where it is better than what the one in use has become meanwhile. An operator may be
 * older than the anchor, so the driver must tell spans back in time as well; none of its pages says so, so we look. */
static bool settle(FlContext *context, uint64_t now) {
  uint64_t slack = (now - context->notBeforeNs) / 2;
  int64_t back;
  context->onItsWay = false;
  if (context->isAnchored && !context->isSigned) {
    if (!fl_elapsed_ns(context->anchor[context->using ^ 1], context->anchor[context->using], &back)) return false;
    if (back >= 0) return false;
    context->isSigned = true;
  }
  if (context->isAnchored && slack > aged(context, now)) return true;
  context->using ^= 1;
  context->anchorNs = context->notBeforeNs + slack;
  context->slackNs = slack;
  context->takenNs = now;
  context->isAnchored = true;
  return true;
}

static bool make_anchors(FlContext *context) {
  enum { NON_BLOCKING = 1 };
  return fl_driver.streamCreate(&context->stream, NON_BLOCKING) == FL_CUDA_SUCCESS &&
         fl_driver.eventCreate(&context->anchor[0], 0) == FL_CUDA_SUCCESS &&
         fl_driver.eventCreate(&context->anchor[1], 0) == FL_CUDA_SUCCESS;
}

/* One that was left alone while nothing ran is worth waiting for the next. */
static int is_usable(const FlContext *context, uint64_t now) {
  return context->isAnchored && (!context->onItsWay || aged(context, now) < OLD_SLACK_NS);
}

/* Its event happened after the last time that we saw it outstanding and before we see it over: so one that comes back late,
 * because all streams share one queue of the hardware (CUDA_DEVICE_MAX_CONNECTIONS=1), is as wrong as we look seldom, and not
 * as it is late. */
int fl_anchor_keep(FlContext *context) {
  uint64_t now = fl_now();
  if (!context->onItsWay) {
    uint64_t due = context->slackNs > POOR_SLACK_NS ? POOR_ANCHOR_NS : ANCHOR_NS;
    if (context->isAnchored && now - context->sentNs < due) return 1;
    if (context->stream == NULL && !make_anchors(context)) return -1;
    context->sentNs = context->notBeforeNs = fl_now();
    if (fl_driver.eventRecord(context->anchor[context->using ^ 1], context->stream) != FL_CUDA_SUCCESS) return -1;
    context->onItsWay = true;
  }
  for (;;) {
    uint64_t before = fl_now();
    int over = fl_event_over(context->anchor[context->using ^ 1]);
    if (over < 0) return -1;
    if (over > 0) return settle(context, fl_now()) ? 1 : -1;
    context->notBeforeNs = before;
    if (before - context->sentNs > SPIN_NS) return is_usable(context, before);
  }
}

/* Nothing happens on the GPU before it was asked for: the anchor's error must not say so. */
bool fl_event_time(const FlTiming *timing, void *event, uint64_t least, uint64_t *ns) {
  int64_t since;
  if (!fl_elapsed_ns(timing->context->anchor[timing->context->using], event, &since)) return false;
  int64_t at = (int64_t)timing->context->anchorNs + since;
  *ns = at < (int64_t)least ? least : (uint64_t)at;
  return true;
}
