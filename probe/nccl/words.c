/* NCCL's words to numbers. Data types: ncclDataType_t of nccl.h; the others are RING.md's. */
#include <string.h>
#include "ring.h"

typedef struct {
  const char *word;
  uint8_t number;
} Word;

static uint8_t look_up(const Word *words, size_t count, const char *word, uint8_t otherwise) {
  if (word == NULL) return otherwise;
  for (size_t i = 0; i < count; i++)
    if (strcmp(words[i].word, word) == 0) return words[i].number;
  return otherwise;
}
#define LOOK_UP(words, word, otherwise) look_up(words, sizeof(words) / sizeof((words)[0]), word, otherwise)

/* In the order of how often training jobs use them. */
static const Word dtypes[] = {
    {"ncclBfloat16", 9}, {"ncclFloat32", 7}, {"ncclFloat16", 6},     {"ncclInt8", 0},        {"ncclUint8", 1},
    {"ncclInt32", 2},    {"ncclInt64", 4},   {"ncclFloat8e4m3", 10}, {"ncclFloat8e5m2", 11}, {"ncclFloat64", 8},
    {"ncclUint32", 3},   {"ncclUint64", 5},
};
static const Word collectives[] = {
    {"AllReduce", 1}, {"AllGather", 2}, {"ReduceScatter", 3}, {"Broadcast", 4}, {"Reduce", 5},
    {"AlltoAll", 6},  {"AllToAll", 6},  {"Gather", 7},        {"Scatter", 8},
};
static const Word algorithms[] = {
    {"RING", 1}, {"TREE", 2}, {"COLLNET_DIRECT", 3}, {"COLLNET_CHAIN", 3}, {"NVLS", 4}, {"NVLS_TREE", 4},
};
static const Word protocols[] = {{"SIMPLE", 3}, {"LL", 1}, {"LL128", 2}};

uint8_t fl_dtype(const char *word) {
  return LOOK_UP(dtypes, word, 255);
}
uint8_t fl_collective(const char *word) {
  return LOOK_UP(collectives, word, 0);
}
uint8_t fl_algorithm(const char *word) {
  return LOOK_UP(algorithms, word, 0);
}
uint8_t fl_protocol(const char *word) {
  return LOOK_UP(protocols, word, 0);
}
