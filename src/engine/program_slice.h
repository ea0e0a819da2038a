// SPDX-License-Identifier: Apache-2.0
// The part of a program that some of its outputs depend on. For the init program: what a change of some
// weights affects.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "engine/program.h"

namespace ingot::core {

// The outputs that depend on a weight whose id is in `weights`, ascending.
std::vector<uint32_t> outputs_that_read(const Program& program, const std::set<size_t>& weights);

struct ProgramSlice {
  Program program;                // without the other steps, outputs and buffers
  std::vector<uint32_t> outputs;  // output k of `program` is output outputs[k] of the whole
};

// The steps that compute `outputs`, in their order, and all outputs that these steps write. A program with
// nested programs is returned whole.
ProgramSlice slice_program(const Program& program, std::span<const uint32_t> outputs);

std::vector<uint32_t> all_outputs(const Program& program);

}  // namespace ingot::core
