// SPDX-License-Identifier: Apache-2.0
// A sample of an operator record as a graph of one node, with random operands.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "loops/kernel.h"
#include "types/tensor.h"

namespace ingot::core::test {

struct SampleGraph {
  Graph graph;
  Node* node;
  SymbolValues symbols;
  std::vector<Tensor> operands;
};

// The operator of a sample as a kernel, at sizes of its symbols.
struct SizedKernel {
  loops::Kernel kernel;
  SymbolValues symbols;
};

std::vector<const Op*> lowered_ops();  // that have samples
// At sizes that no sample has, 0 among them; not of samples without symbols. The operator need not allow
// them.
std::vector<SizedKernel> at_other_sizes(const Op& op);

// Without values of the operands.
SampleGraph make_sample_node(const Op& op, const Sample& sample, DType dtype = DType::kF32);
// `dtype` replaces f32 in operands. Values depend on nothing but the sample.
SampleGraph make_sample_graph(const Op& op, const Sample& sample, DType dtype = DType::kF32);
std::vector<Tensor> evaluate_sample(const SampleGraph& sample);
std::vector<double> values_of(const Tensor& tensor);

}  // namespace ingot::core::test
