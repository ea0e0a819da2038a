// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ingot::core {

// `alignment` is a power of two and divides `bytes`. Null if the system is out of memory.
void* allocate_aligned(size_t bytes, size_t alignment);
void release_aligned(void* memory);
// A hint: `memory` is best on large pages.
void prefer_huge_pages(void* memory, size_t bytes);

}  // namespace ingot::core
