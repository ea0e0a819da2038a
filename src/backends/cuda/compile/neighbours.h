// SPDX-License-Identifier: Apache-2.0
// Neighbouring elements of which one thread of an elementwise kernel computes several: it decodes their place
// once, and loads and stores vectors of up to 16 bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/cuda/compile/index_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// The loops of a stage's points, the innermost last.
std::vector<loops::Loop> loops_of(const loops::Kernel& kernel, const loops::Stage& stage);

// Whether the elements at `index` along `variable` lie side by side, and have a dtype of vectors.
bool are_in_vectors(const loops::Buffer& buffer, std::span<const Dim> index, const std::string& variable);

// How many neighbours a thread takes along the innermost loop; 1 if the stage does not store them side by
// side, or where the GPU would be left without enough threads. The extent is a multiple of it.
int neighbours_of(const loops::Kernel& kernel, const loops::Stage& stage);

// Groups of so many neighbours.
Dim points_of(const loops::Kernel& kernel, const loops::Stage& stage, int neighbours);

// A vector that is loaded once for all neighbours.
struct NeighbourLoad {
  int buffer;
  Dim offset;                                 // of the first, where the loop's variable is its number
  std::vector<const loops::ExprNode*> nodes;  // that read it
};
// The loads of neighbours along `loop`, from buffers that nothing writes, at places that exist.
std::vector<NeighbourLoad> neighbour_loads(const loops::Kernel& kernel, const loops::Stage& stage,
                                           const loops::Loop& loop, const IndexScope& scope);

}  // namespace ingot::core::cuda
