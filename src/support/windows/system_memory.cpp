// SPDX-License-Identifier: Apache-2.0
#include "support/system_memory.h"

#include <malloc.h>

namespace ingot::core {

void* allocate_aligned(size_t bytes, size_t alignment) { return ::_aligned_malloc(bytes, alignment); }

void release_aligned(void* memory) { ::_aligned_free(memory); }

// Large pages need a privilege here that few users have.
void prefer_huge_pages(void*, size_t) {}

}  // namespace ingot::core
