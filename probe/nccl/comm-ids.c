/* Numbers of communicators: every member comes to the same one without asking the others. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shim.h"

/* FNV-1a, then the finaliser of splitmix64, because FNV's high bits are weak for short inputs. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}
static const uint64_t basis = 0xcbf29ce484222325u;

/* 0 stands for "no communicator". */
static uint64_t not_zero(uint64_t id) {
  return id == 0 ? 1 : id;
}

uint64_t fl_id_of_unique(const void *ids, size_t bytes) {
  return not_zero(mix(basis, ids, bytes));
}

uint64_t fl_id_of_split(uint64_t parent, int colour, uint32_t nth) {
  uint32_t words[3] = {(uint32_t)colour, nth, 's'};
  return not_zero(mix(parent, words, sizeof words));
}

/* The excluded ranks name the same set on all members, though maybe in another order: sums do not mind. */
uint64_t fl_id_of_shrink(uint64_t parent, const int *excluded, int count, uint32_t nth) {
  uint64_t sum = 0;
  for (int i = 0; excluded != NULL && i < count; i++) sum += mix(basis, &excluded[i], sizeof excluded[i]);
  uint64_t words[3] = {sum, nth, 'k'};
  return not_zero(mix(parent, words, sizeof words));
}

/* For communicators whose members are all in this process, or about which nothing shared is known. */
uint64_t fl_id_within_process(uint64_t what) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  uint64_t words[2] = {(uint64_t)getpid(), what};
  return not_zero(mix(mix(basis, host, strlen(host)), words, sizeof words));
}
