// SPDX-License-Identifier: Apache-2.0
// Composes two kernels into one. Each buffer carries the caller's number of the value that it holds; equal
// numbers become one buffer of the result.
//
// An elementwise kernel ("map") has one stage without stage loops or reduction, which stores once, at the
// parallel loops' own indices: elementwise and view ops lower to it.
#pragma once

#include <vector>

#include "loops/kernel.h"

namespace ingot::core::loops {

struct NumberedKernel {
  Kernel kernel;
  std::vector<int> values;  // one per buffer
};

bool is_elementwise(const Kernel& kernel);

// `producer` is a map that writes `value`, which `consumer` reads: its computation replaces the loads. A row
// that several stages of the consumer read is computed once, into a local row.
NumberedKernel inline_producer(const NumberedKernel& consumer, int value, const NumberedKernel& producer);

// `consumer` is a map that reads `value`, written by `producer`, at its own index: it is computed where the
// producer stored. `value` is no longer stored.
NumberedKernel append_consumer(const NumberedKernel& producer, int value, const NumberedKernel& consumer);

// Whether a kernel only stores values that it computes one by one, each by itself: some elements of its
// buffer.
bool stores_alone(const Kernel& kernel);

// Both kernels, each of which stores_alone and neither of which reads what the other writes, as stages of
// one.
NumberedKernel side_by_side(const NumberedKernel& first, const NumberedKernel& second);

// Loads and stores of buffer i become those of buffer numbers[i]; the list of buffers is unchanged.
void use_buffers(Kernel& kernel, const std::vector<int>& numbers);

// Buffer i becomes buffer numbers[i]; buffers that become unused are dropped.
NumberedKernel renumber_buffers(const NumberedKernel& kernel, const std::vector<int>& numbers);

}  // namespace ingot::core::loops
