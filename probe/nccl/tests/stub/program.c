/* Plays python: knows nothing of NCCL, opens a framework that does (RTLD_LOCAL, as extension modules are). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stub.h"

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
  /* A job that closes NCCL and still calls what it looked up before. */
  if (strcmp(words[1], "closes") == 0) {
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(void **, int, UniqueId, int), (*reduce)(const void *, void *, size_t, int, int, void *, void *);
    *(void **)&init = dlsym(RTLD_DEFAULT, "ncclCommInitRank");
    *(void **)&reduce = dlsym(RTLD_DEFAULT, "ncclAllReduce");
    if (nccl == NULL || init == NULL || reduce == NULL) return 3;
    void *comm = NULL;
    UniqueId id = {{1}};
    init(&comm, 2, id, 0);
    int first = reduce(NULL, NULL, 1, 7, 0, comm, NULL);
    dlclose(nccl);
    printf("{\"first\":%d,\"second\":%d}\n", first, reduce(NULL, NULL, 1, 7, 0, comm, NULL));
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
