/* Plays python: knows nothing of NCCL, opens a framework that does (RTLD_LOCAL, as extension modules are). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
  if (count < 2) return 2;
  if (strcmp(words[1], "nothing") == 0) return 0;
  /* A call where no library has the function. */
  if (strcmp(words[1], "no-library") == 0) {
    int (*reduce)(const void *, void *, size_t, int, int, void *, void *);
    *(void **)&reduce = dlsym(RTLD_DEFAULT, "ncclAllReduce");
    int (*product)(void *);
    *(void **)&product = dlsym(RTLD_DEFAULT, "cublasSgemm_v2");
    if (reduce == NULL || product == NULL) return 3;
    printf("{\"reduce\":%d,\"product\":%d}\n", reduce(NULL, NULL, 1, 7, 0, NULL, NULL), product(NULL));
    return 0;
  }
  const char *name = getenv("STUB_FRAMEWORK");
  void *framework = dlopen(name == NULL ? "libframework.so" : name, RTLD_NOW | RTLD_LOCAL);
  if (framework == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*run)(int, char **);
  *(void **)&run = dlsym(framework, "run");
  return run(count, words);
}
