/* When the GPU began and ended an operator: a pair of CUDA events around the call, which a thread of ours looks at later.
 * The training thread only records events; it never waits for one. */
#ifndef FAULTLINE_CUDA_H
#define FAULTLINE_CUDA_H
#include "queue.h"
#include "ring.h"

/* The driver's functions, CUDA's or HIP's: both number results and flags alike. */
typedef struct {
  int (*eventCreate)(void **event, unsigned flags);
  int (*eventRecord)(void *event, void *stream);
  int (*eventQuery)(void *event);
  int (*eventElapsed)(float *ms, void *start, void *end);
  int (*streamCreate)(void **stream, unsigned flags);
  int (*streamIsCapturing)(void *stream, int *status);
  int (*streamContext)(void *stream, void **context); /* NULL where the driver has none: the thread's context counts */
  int (*contextGet)(void **context);
  int (*contextSet)(void *context);
  int (*captureMode)(int *mode); /* NULL in drivers before CUDA 10.1 */
} FlDriver;
enum { FL_CUDA_SUCCESS = 0, FL_CUDA_NO_CONTEXT = 201, FL_CUDA_NOT_READY = 600 };
enum { FL_CAPTURE_FIRST = 900, FL_CAPTURE_LAST = 908, FL_RELAXED = 2 };

/* A GPU as one process sees it, and where its clock stands on ours. */
typedef struct {
  _Atomic(void *) handle;
  FlQueue idle; /* pairs of events that nobody uses */
  /* What follows belongs to the thread that resolves. */
  void *stream;
  void *anchor[2]; /* the one in use, and the one that is on its way */
  unsigned using;
  bool isAnchored, isSigned, onItsWay;
  uint64_t anchorNs, slackNs, takenNs; /* its time on our clock, how wrong that may be, when it was taken */
  uint64_t sentNs, notBeforeNs; /* of the one on its way: asked for, and seen outstanding */
} FlContext;

typedef struct FlTiming {
  FlContext *context;
  void *stream, *start, *end;
  FlHeader *ring;
  uint64_t ticket, issuedNs, startedNs;
  uint64_t *tickets; /* of a group; NULL where there is one only */
  uint32_t count;
  struct FlTiming *next;
} FlTiming;

typedef struct {
  uint64_t ticket;
  uint32_t stream; /* index into the group's streams */
} FlMember;

enum { FL_MOST_TIMINGS = 4096 };

/* Makes the first events and the thread while a communicator is made, which takes long anyway. */
void fl_timing_prepare(void);
/* A pair of events whose first one is now on the stream; NULL, and why in the flags, where there is none to be had. */
FlTiming *fl_timing_begin(void *stream, uint8_t *flags);
/* The second event, where the call went well; returns flags, and NULL in *timing where the record stays untimed. */
uint8_t fl_timing_end(FlTiming **timing, bool launched);
void fl_timing_submit_one(FlTiming *timing, FlHeader *ring, uint64_t ticket, uint64_t issuedNs);
/* The members that are on one of the group's streams. */
void fl_timing_submit(FlTiming *timing, FlHeader *ring, const FlMember *members, uint32_t count, uint32_t stream,
                      uint64_t issuedNs);
void fl_timing_after_fork(void);

/* driver.c */
extern FlDriver fl_driver;
bool fl_driver_find(void);
/* This thread's calls do not count as forbidden while another captures a graph; returns what to hand to the next call. */
int fl_relax_capture(int mode);

/* cuda.c, for resolve.c */
extern FlQueue fl_submitted;
/* Stops timing for good: an error of the driver's is the job's to meet, not ours to add to. */
void fl_timing_stop(void);
bool fl_timing_stopped(void);
void fl_timing_give_back(FlTiming *timing);

/* resolve.c */
bool fl_resolver_start(void);
void fl_resolver_after_fork(void);

/* anchors.c: ints are 1 yes, 0 not yet, -1 the driver fails; bools are false where it does. */
int fl_event_over(void *event);
bool fl_elapsed_ns(void *from, void *to, int64_t *ns);
/* Keeps the context's anchor fresh, and tells whether it can be used. */
int fl_anchor_keep(FlContext *context);
/* When an event was, on our clock. */
bool fl_event_time(const FlTiming *timing, void *event, uint64_t least, uint64_t *ns);

#endif
