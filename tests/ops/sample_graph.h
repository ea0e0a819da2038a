// SPDX-License-Identifier: Apache-2.0
// A sample of an operator record as a graph of one node, with random operands.
#pragma once

#include <optional>
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

std::vector<const Op*> ops_with_samples();
std::vector<const Op*> lowered_ops();  // that have samples
// At sizes that no sample has, 0 among them; not of samples without symbols. The operator need not allow
// them.
std::vector<SizedKernel> at_other_sizes(const Op& op);

// Without values of the operands.
SampleGraph make_sample_node(const Op& op, const Sample& sample, DType dtype = DType::kF32);
// `dtype` replaces f32 in operands. Values depend on nothing but the sample.
SampleGraph make_sample_graph(const Op& op, const Sample& sample, DType dtype = DType::kF32);
// One that callers can call: nothing where the record rejects the dtype, for operands in layouts, and for
// sizes that no shape of an input gives. Results in layouts are laid out in rows.
std::optional<SampleGraph> callable_sample(const Op& op, const Sample& sample, DType dtype);
std::vector<Tensor> evaluate_sample(const SampleGraph& sample);
std::vector<double> values_of(const Tensor& tensor);
// By the rule of compiler/accuracy.h.
void expect_near(const Tensor& expected, const Tensor& got);

}  // namespace ingot::core::test
