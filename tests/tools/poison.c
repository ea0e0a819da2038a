/* SPDX-License-Identifier: Apache-2.0
 * Preloaded (LD_PRELOAD): memory comes from malloc and its kin filled with signalling NaNs, so that reading it before it
 * is written shows: in results, or as files that differ from pattern to pattern. INGOT_POISON is the pattern, 32 bits
 * as hexadecimal digits. calloc gives zeros, as ever. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static uint32_t pattern(void) {
  static uint32_t chosen = 0;
  if (chosen == 0) {
    const char* text = getenv("INGOT_POISON");
    const uint32_t given = text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 16);
    chosen = given == 0 ? 0x7fa15e5eu : given;
  }
  return chosen;
}

/* A float at each multiple of four bytes is the pattern. */
static void fill(void* memory, size_t from, size_t size) {
  const uint32_t word = pattern();
  unsigned char* bytes = memory;
  while (from < size && from % sizeof(word) != 0) {
    bytes[from] = (unsigned char)(word >> (8 * (from % sizeof(word))));
    ++from;
  }
  for (; from + sizeof(word) <= size; from += sizeof(word)) memcpy(bytes + from, &word, sizeof(word));
  for (; from < size; ++from) bytes[from] = (unsigned char)(word >> (8 * (from % sizeof(word))));
}

static void* filled(void* memory, size_t size) {
  if (memory != NULL) fill(memory, 0, size);
  return memory;
}

void* malloc(size_t size) { return filled(__libc_malloc(size), size); }

void* realloc(void* memory, size_t size) {
  const size_t before = memory == NULL ? 0 : malloc_usable_size(memory);
  void* result = __libc_realloc(memory, size);
  if (result != NULL && size > before) fill(result, before, size);
  return result;
}

void* memalign(size_t alignment, size_t size) { return filled(__libc_memalign(alignment, size), size); }

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  const int powers = alignment % sizeof(void*) == 0 && alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!powers) return EINVAL;
  *memory = memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}
