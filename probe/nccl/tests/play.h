/* Many communicators at once, each with a thread that calls and a proxy's thread, while another process reads. */
#ifndef PLAY_H
#define PLAY_H
#include <pthread.h>
#include "pretend-nccl.h"
#include "read-along.h"

static Operator telling(int root) {
  static const char *const funcs[] = {"AllReduce", "ReduceScatter", "Reduce"};
  static const uint8_t numbers[] = {4, 3, 1};
  static const char *const algos[] = {"RING", "TREE"};
  static const uint8_t algoNumbers[] = {1, 0};
  Operator op = {.dtype = "ncclBfloat16", .dtypeNumber = 9, .proto = "SIMPLE", .protoNumber = 2, .channels = 2};
  op.func = funcs[root % 3];
  op.funcNumber = numbers[root % 3];
  op.algo = algos[root % 2];
  op.algoNumber = algoNumbers[root % 2];
  op.count = count_of(root);
  op.root = root;
  return op;
}
typedef struct {
  void *task;
  Operator op;
} Work;
enum { QUEUE = 256 };
typedef struct {
  Comm comm;
  Plugin plugin;
  int index, operators;
  Work queue[QUEUE];
  unsigned head, tail;
  bool isOver;
  pthread_mutex_t lock;
  pthread_cond_t changed;
} Player;

static void *proxy_thread(void *argument) {
  Player *player = argument;
  for (;;) {
    pthread_mutex_lock(&player->lock);
    while (player->head == player->tail && !player->isOver) pthread_cond_wait(&player->changed, &player->lock);
    if (player->head == player->tail) {
      pthread_mutex_unlock(&player->lock);
      return NULL;
    }
    Work work = player->queue[player->head++ % QUEUE];
    pthread_cond_signal(&player->changed);
    pthread_mutex_unlock(&player->lock);
    void *kernels[8];
    for (uint8_t c = 0; c < work.op.channels; c++) kernels[c] = kernel_begin(&player->comm, work.task, c, gpu_ns());
    for (uint8_t c = 0; c < work.op.channels; c++) {
      Comm quiet = player->comm;
      quiet.mask &= ~EV_KERNEL_CH;
      channel_work(&quiet, work.task, c, 1, 4, 100);
    }
    for (uint8_t c = 0; c < work.op.channels; c++) kernel_end(&player->comm, kernels[c], gpu_ns());
  }
}

static void *app_thread(void *argument) {
  Player *player = argument;
  pthread_t proxy;
  char name[16];
  snprintf(name, sizeof name, "player %d", player->index);
  comm_init(&player->comm, &player->plugin, 1000 + (uint64_t)player->index, name, 0, 8);
  pthread_create(&proxy, NULL, proxy_thread, player);
  for (int i = 0; i < player->operators; i++) {
    Operator op = telling(player->index * 10000000 + i);
    void *group = group_begin(&player->comm);
    void *api = api_call(&player->comm, &op, group);
    void *task = task_begin(&player->comm, &op, api);
    pthread_mutex_lock(&player->lock);
    while (player->tail - player->head == QUEUE) pthread_cond_wait(&player->changed, &player->lock);
    player->queue[player->tail++ % QUEUE] = (Work){task, op};
    pthread_cond_signal(&player->changed);
    pthread_mutex_unlock(&player->lock);
    stop_event(&player->comm, task);
    stop_event(&player->comm, group);
  }
  pthread_mutex_lock(&player->lock);
  player->isOver = true;
  pthread_cond_signal(&player->changed);
  pthread_mutex_unlock(&player->lock);
  pthread_join(proxy, NULL);
  comm_finalize(&player->comm);
  return NULL;
}

static int play(const char *library, int version, int threads, int operators) {
  int over;
  pid_t reader = start_reader(&over);
  Player *players = calloc((size_t)threads, sizeof *players);
  pthread_t *apps = calloc((size_t)threads, sizeof *apps);
  for (int i = 0; i < threads; i++) {
    players[i].plugin = load(library, version);
    players[i].index = i;
    players[i].operators = operators;
    pthread_mutex_init(&players[i].lock, NULL);
    pthread_cond_init(&players[i].changed, NULL);
  }
  for (int i = 0; i < threads; i++) pthread_create(&apps[i], NULL, app_thread, &players[i]);
  for (int i = 0; i < threads; i++) pthread_join(apps[i], NULL);
  int status = end_of_reader(reader, over);
  free(players);
  free(apps);
  return status;
}

#endif
