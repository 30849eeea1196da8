/* Writes into a ring without rest, for tests of whoever reads it meanwhile (probe/RING.md, "Record"): ring-writer FILE
 * RECORDS_OFFSET RECORDS. Half of the writes are new records, half change a recent one in place; a, b, issued, started,
 * ended and d of a record all follow from one number, so that a mixture of two states shows. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  _Atomic uint64_t stamp;
  uint8_t kind, func, dtype, flags;
  uint16_t group;
  uint8_t channels, channelsEnded;
  volatile uint64_t a;
  volatile uint32_t b;
  volatile int32_t c;
  volatile uint64_t issued, started, ended;
  volatile uint32_t d, e;
} Record;

static void fill(Record *record, uint64_t ticket, uint64_t number) {
  atomic_store_explicit(&record->stamp, (ticket + 1) * 2 + 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  record->kind = 1;
  record->a = number;
  record->b = (uint32_t)number;
  record->issued = number;
  record->started = number;
  record->ended = number;
  record->d = (uint32_t)number;
  atomic_store_explicit(&record->stamp, (ticket + 1) * 2, memory_order_release);
}

int main(int count, char **words) {
  if (count < 4) return 2;
  uint64_t offset = strtoull(words[2], NULL, 10), records = strtoull(words[3], NULL, 10);
  int file = open(words[1], O_RDWR);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) return 1;
  char *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) return 1;
  _Atomic uint64_t *head = (_Atomic uint64_t *)(bytes + 512);
  Record *slots = (Record *)(bytes + offset);
  for (uint64_t number = 1;; number++) {
    uint64_t ticket = atomic_fetch_add(head, 1);
    fill(&slots[ticket % records], ticket, number);
    uint64_t back = number * 7 % 64;
    if (back < ticket) fill(&slots[(ticket - back) % records], ticket - back, ++number);
    /* Once: who reads the ring has no time for more. */
    if (ticket == 4096 && write(STDOUT_FILENO, ".", 1) != 1) return 1;
  }
}
