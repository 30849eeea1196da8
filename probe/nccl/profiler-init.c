/* A communicator is made, or goes: what NCCL is asked to tell of it, and what its name and number are. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "profiler-abi.h"
#include "profiler.h"

_Atomic bool fl_plugin_active;

enum { DEFAULT_MASK = EV_COLL | EV_P2P | EV_PROXY_OP | EV_PROXY_STEP | EV_KERNEL_CH | EV_CE_COLL };
static int highest_version;

/* "coll,p2p,kernel,proxy,step", or a number in C's notation; NCCL's own bits. */
static int wanted_mask(void) {
  static const struct {
    const char *word;
    int bits;
  } words[] = {
      {"coll", EV_COLL | EV_CE_COLL}, {"p2p", EV_P2P}, {"kernel", EV_KERNEL_CH}, {"proxy", EV_PROXY_OP}, {"step", EV_PROXY_STEP},
  };
  const char *text = getenv("FAULTLINE_NCCL_MASK");
  if (text == NULL || text[0] == '\0') return DEFAULT_MASK;
  char *end;
  long number = strtol(text, &end, 0);
  if (end != text && *end == '\0') return (int)number & DEFAULT_MASK;
  int mask = 0;
  while (*text != '\0') {
    size_t length = strcspn(text, ", ");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      if (strlen(words[i].word) == length && strncmp(words[i].word, text, length) == 0) mask |= words[i].bits;
    text += length;
    if (*text != '\0') text++;
  }
  return mask;
}

/* "NCCL 2.28.9", asked of whoever called us: a process may hold more than one NCCL. */
static void name_library(FlHeader *ring, const void *caller) {
  Dl_info where;
  void *library = NULL, *symbol = NULL;
  if (dladdr(caller, &where) != 0 && where.dli_fname != NULL) library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library != NULL) symbol = dlsym(library, "ncclGetVersion");
  if (symbol == NULL) symbol = dlsym(RTLD_DEFAULT, "ncclGetVersion");
  int (*get_version)(int *);
  memcpy(&get_version, &symbol, sizeof get_version);
  int version = 0;
  if (symbol != NULL && get_version(&version) == 0 && version >= 10000)
    snprintf(ring->library, sizeof ring->library, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  if (library != NULL) dlclose(library);
}

static FlHeader *begin(int version, int *mask, const void *caller) {
  *mask = 0;
  int wanted = wanted_mask();
  FlHeader *ring = wanted == 0 ? NULL : fl_ring();
  if (ring == NULL) return NULL;
  fl_tables_lock();
  fl_events_prepare(ring);
  atomic_store(&fl_profiler_mask, wanted);
  if (version > highest_version || ring->source[0] == '\0') {
    highest_version = version;
    snprintf(ring->source, sizeof ring->source, "nccl-profiler-v%d", version);
  }
  if (ring->library[0] == '\0') name_library(ring, caller);
  fl_tables_unlock();
  return ring;
}

/* What NCCL knows under a version of the interface. */
static int events_of(int version) {
  return version < 3 ? ~(EV_KERNEL_CH | EV_CE_COLL) : version < 6 ? ~EV_CE_COLL : ~0;
}

/* NCCL's own word, one for the whole process, where it is a variable of its library and not of some stack. */
static _Atomic(int *) mask_of_nccl;
static _Atomic int mask_at_start;

static void remember_mask(int *mask, const void *caller) {
  Dl_info of_mask, of_caller;
  if (dladdr(mask, &of_mask) == 0 || dladdr(caller, &of_caller) == 0 || of_mask.dli_fbase != of_caller.dli_fbase) return;
  atomic_store(&mask_at_start, *mask);
  atomic_store(&mask_of_nccl, mask);
}

void fl_mask_follow(FlHeader *ring) {
  static uint32_t taken;
  uint32_t wanted = atomic_load_explicit(&ring->maskWanted, memory_order_relaxed);
  int *mask = atomic_load(&mask_of_nccl);
  if (wanted == taken || mask == NULL) return;
  taken = wanted;
  int all = atomic_load(&mask_at_start);
  __atomic_store_n(mask, wanted == 0 ? all : (int)(wanted - 1) & all, __ATOMIC_RELAXED);
}

static int open_context(int version, FlHeader *ring, uint16_t comm, void **context, int *mask,
                        const void *caller) {
  *context = ring == NULL ? NULL : fl_context_open(ring, comm, version);
  /* The mask is one for the whole process, so a communicator without a context must not take it from the others. */
  if (ring != NULL) {
    *mask = atomic_load(&fl_profiler_mask) & events_of(version);
    remember_mask(mask, caller);
  }
  if (*context != NULL) atomic_store(&fl_plugin_active, true);
  return 0;
}

#define CALLER __builtin_return_address(0)

/* v1 to v3 name the communicator with each operator only. */
static int init_early(int version, void **context, int *mask, const void *caller) {
  return open_context(version, begin(version, mask, caller), FL_NONE, context, mask, caller);
}
int fl_init_v1(void **context, int *mask) {
  return init_early(1, context, mask, CALLER);
}
int fl_init_v2(void **context, int *mask) {
  return init_early(2, context, mask, CALLER);
}
int fl_init_v3(void **context, int *mask) {
  return init_early(3, context, mask, CALLER);
}

static int init_late(int version, void **context, int *mask, const char *name, uint64_t id, int nodes, int size, int rank,
                     const void *caller) {
  FlHeader *ring = begin(version, mask, caller);
  uint16_t comm = ring == NULL ? FL_NONE : fl_comm(ring, id, rank, size, nodes, name, 0);
  return open_context(version, ring, comm, context, mask, caller);
}
int fl_init_v4(void **context, int *mask, const char *name, uint64_t id, int nodes, int size, int rank, NcclLogger log) {
  (void)log;
  return init_late(4, context, mask, name, id, nodes, size, rank, CALLER);
}
int fl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int size, int rank, NcclLogger log) {
  (void)log;
  return init_late(5, context, mask, name, id, nodes, size, rank, CALLER);
}
int fl_init_v6(void **context, uint64_t id, int *mask, const char *name, int nodes, int size, int rank, NcclLogger log) {
  (void)log;
  return init_late(6, context, mask, name, id, nodes, size, rank, CALLER);
}

int fl_finalize(void *number) {
  Context *context = fl_context(number);
  if (context != NULL) {
    uint32_t comm = atomic_load(&context->comm);
    FlHeader *ring = atomic_load(&context->ring);
    if (comm != FL_NONE) atomic_fetch_or(&fl_comm_at(ring, (uint16_t)comm)->flags, 1);
  }
  fl_context_close(number);
  return 0;
}
