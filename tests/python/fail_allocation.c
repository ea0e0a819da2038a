/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: in a process, the allocation number FAIL_ALLOCATION (from 0, counted since main began) fails, with FAIL_ALL=1
 * all after it too. The file FAIL_MARK appears when it does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long left = -1;
static int all_after;
static const char* mark;

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static int fails(void) {
  if (atomic_load(&left) < 0) return 0;
  const long now = atomic_fetch_sub(&left, 1);
  if (now > 0) return 0;
  if (now < 0) return 0; /* another thread's */
  if (all_after) atomic_store(&left, 0);
  if (mark != NULL) {
    close(open(mark, O_CREAT | O_WRONLY, 0600));
    mark = NULL;
  }
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return fails() ? NULL : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  const char* number = getenv("FAIL_ALLOCATION");
  const char* all = getenv("FAIL_ALL");
  all_after = all != NULL && *all == '1';
  mark = getenv("FAIL_MARK");
  if (number != NULL) atomic_store(&left, atol(number));
  const int status = real_main(argc, argv, environment);
  atomic_store(&left, -1); /* what the C library does at the end is its own */
  return status;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  const Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
