// SPDX-License-Identifier: Apache-2.0
#include "support/system_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace ingot::core {

void* allocate_aligned(size_t bytes, size_t alignment) { return std::aligned_alloc(alignment, bytes); }

void release_aligned(void* memory) { std::free(memory); }

void prefer_huge_pages(void* memory, size_t bytes) { ::madvise(memory, bytes, MADV_HUGEPAGE); }

}  // namespace ingot::core
