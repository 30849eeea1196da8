/* The interface between NCCL and a profiler plug-in, versions 1 to 6, as far as it is a matter of layout: what NCCL's
 * src/include/plugin/profiler/profiler_v*.h lay down. Declared here so that the probe builds without NCCL.
 *   v1 2.23, v2 2.24/25, v3 2.26, v4 2.27, v5 2.28, v6 2.29 and later (which still ask for the older ones).
 * Members that nobody reads here keep their place under the name that NCCL gives them. */
#ifndef FAULTLINE_PROFILER_ABI_H
#define FAULTLINE_PROFILER_ABI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { /* Types of events, also the bits of the activation mask. */
  EV_GROUP = 1 << 0,
  EV_COLL = 1 << 1,
  EV_P2P = 1 << 2,
  EV_PROXY_OP = 1 << 3,
  EV_PROXY_STEP = 1 << 4,
  EV_PROXY_CTRL = 1 << 5,
  EV_KERNEL_CH = 1 << 6,    /* v3 */
  EV_NET_PLUGIN = 1 << 7,   /* v3 */
  EV_GROUP_API = 1 << 8,    /* v5 */
  EV_COLL_API = 1 << 9,     /* v5 */
  EV_P2P_API = 1 << 10,     /* v5 */
  EV_KERNEL_LAUNCH = 1 << 11, /* v5 */
  EV_CE_COLL = 1 << 12,     /* v6 */
};

enum { /* States of events that are looked at. */
  ST_SEND_GPU_WAIT = 8,
  ST_SEND_WAIT = 9,
  ST_RECV_WAIT = 10,
  ST_RECV_FLUSH_WAIT = 11,
  ST_RECV_GPU_WAIT = 12,
  ST_SEND_PEER_WAIT = 20, /* v4 */
  ST_KERNEL_CH_STOP = 22, /* v4 */
};

typedef void (*NcclLogger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

typedef struct {
  pid_t pid; /* NCCL's ncclPid_t is pid_t on Linux, in all versions. */
  uint8_t channelId;
  int peer, nSteps, chunkSize, isSend;
} EvProxyOp;

typedef struct {
  int step;
} EvProxyStep;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      uint8_t func;
      void const *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t trafficBytes;
      uint8_t nMaxChannels, nWarps, algo, proto;
      int isCollnet, isNvls;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      uint8_t func;
      void *buff;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    EvProxyOp proxyOp;
    EvProxyStep proxyStep;
  };
} EventV1;

typedef struct {
  const char *name;
  uint64_t commHash;
  const char *func;
  void *buff;
  const char *datatype;
  size_t count;
  int peer;
} EvP2pV2;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      const char *func;
      void const *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      size_t trafficBytes;
      uint8_t nMaxChannels, nWarps;
      const char *algo, *proto;
    } coll;
    EvP2pV2 p2p;
    EvProxyOp proxyOp;
    EvProxyStep proxyStep;
  };
} EventV2;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      const char *func;
      void const *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nMaxChannels, nWarps;
      const char *algo, *proto;
    } coll;
    EvP2pV2 p2p;
    EvProxyOp proxyOp;
    EvProxyStep proxyStep;
    struct {
      uint8_t channelId;
    } kernelCh;
  };
} EventV3;

typedef struct {
  uint8_t channelId;
  uint64_t pTimer; /* GPU's globaltimer, ns */
} EvKernelCh;

typedef struct {
  uint64_t seqNumber; /* Counts calls of one function, not of the communicator. */
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  uint8_t nChannels, nWarps;
  const char *algo, *proto;
} EvCollV4;

typedef struct {
  const char *func;
  void *buff;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
} EvP2pV4;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    EvCollV4 coll;
    EvP2pV4 p2p;
    EvProxyOp proxyOp;
    EvProxyStep proxyStep;
    EvKernelCh kernelCh;
  };
} EventV4;

/* v5 adds a last member (the group) to coll and p2p, which moves nothing before it; v6 adds alternatives to the union, of
 * which ceColl is one. A plug-in only reads events, so one declaration serves both. */
typedef struct {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      int root;
      void *stream;
      bool graphCaptured;
    } collApi;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      void *stream;
      bool graphCaptured;
    } p2pApi;
    struct {
      EvCollV4 coll;
      void *parentGroup;
    };
    struct {
      EvP2pV4 p2p;
      void *p2pParentGroup;
    };
    EvProxyOp proxyOp;
    EvProxyStep proxyStep;
    EvKernelCh kernelCh;
    struct {
      uint64_t seqNumber;
      const char *func;
      void const *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
    } ceColl; /* v6; has more members behind these. */
  };
} EventV5;

typedef union {
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
} StateArgsV1; /* to v3 */

typedef union {
  struct {
    size_t transSize;
  } proxyStep;
  struct {
    uint64_t pTimer;
  } kernelCh;
} StateArgsV4; /* and later */

typedef struct {
  const char *name;
  int (*init)(void **context, int *mask);
  int (*startEvent)(void *context, void **handle, void *event);
  int (*stopEvent)(void *handle);
  int (*recordEventState)(void *handle, int state, void *args);
  int (*finalize)(void *context);
} ProfilerV1; /* to v3; the events differ */

typedef struct {
  const char *name;
  int (*init)(void **context, int *mask, const char *commName, uint64_t commHash, int nNodes, int nranks, int rank,
              NcclLogger logger);
  int (*startEvent)(void *context, void **handle, void *event);
  int (*stopEvent)(void *handle);
  int (*recordEventState)(void *handle, int state, void *args);
  int (*finalize)(void *context);
} ProfilerV4;

typedef struct {
  const char *name;
  int (*init)(void **context, uint64_t commId, int *mask, const char *commName, int nNodes, int nranks, int rank,
              NcclLogger logger);
  int (*startEvent)(void *context, void **handle, void *event);
  int (*stopEvent)(void *handle);
  int (*recordEventState)(void *handle, int state, void *args);
  int (*finalize)(void *context);
} ProfilerV5; /* and v6 */

#endif
