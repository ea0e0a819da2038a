// SPDX-License-Identifier: Apache-2.0
// Two kernels become one. Each buffer carries the caller's number of the value that it holds, so that equal
// numbers are one buffer of the result.
//
// A map is a kernel of one stage without stage loops or reduction, which stores once at its parallel loops'
// own indices: what elementwise and view ops lower to.
#pragma once

#include <vector>

#include "loops/kernel.h"

namespace ingot::core::loops {

struct NumberedKernel {
  Kernel kernel;
  std::vector<int> values;  // one a buffer
};

bool is_map(const Kernel& kernel);

// `producer` is a map that writes `value`, which `consumer` reads: its computation takes the place of the
// loads. A row that several stages of the consumer read is computed once, into a local row.
NumberedKernel inline_producer(const NumberedKernel& consumer, int value, const NumberedKernel& producer);

// `consumer` is a map that reads `value` at its own index, which `producer` writes: it is computed where the
// producer stored. `value` is not stored any more.
NumberedKernel append_consumer(const NumberedKernel& producer, int value, const NumberedKernel& consumer);

// Loads and stores of buffer i become those of buffer numbers[i]; the list of buffers stays.
void use_buffers(Kernel& kernel, const std::vector<int>& numbers);

// Buffer i becomes buffer numbers[i]; buffers that nothing uses any more are dropped.
NumberedKernel renumber_buffers(const NumberedKernel& kernel, const std::vector<int>& numbers);

}  // namespace ingot::core::loops
