/* Numbers out of the environment. What is no number counts as not set: the job's environment is not ours to judge. */
#include <errno.h>
#include <stdlib.h>
#include "within.h"

static bool parse(const char *text, long *value) {
  if (text == NULL || text[0] < '0' || text[0] > '9') return false;
  char *end;
  errno = 0;
  *value = strtol(text, &end, 10);
  return errno == 0 && *end == '\0';
}

long fl_number(const char *name, long least, long most, long otherwise) {
  long value;
  if (!parse(getenv(name), &value)) return otherwise;
  return value < least ? least : value > most ? most : value;
}

int32_t fl_first_number(const char *const *names) {
  for (; *names != NULL; names++) {
    long value;
    if (parse(getenv(*names), &value) && value <= INT32_MAX) return (int32_t)value;
  }
  return -1;
}
