// SPDX-License-Identifier: Apache-2.0
// Noise of rounding size, and nodes computed in wider dtypes: what reference.cpp perturbs graphs with.
#pragma once

#include <span>
#include <vector>

#include "evaluate/evaluate.h"
#include "tests/random/fill.h"

namespace ingot::core::random_graphs {

inline bool is_below_f64(DType dtype) { return is_half(dtype) || dtype == DType::kF32; }

// Whether the node rounds anything on its way, or only chooses, moves and compares.
bool rounds(const Node& node);

// Whether the node converts to a half whose rounding kernels have to keep: a reader makes integers or bools
// of it, or jumps, or converts it.
bool must_keep_rounding(const Node& node);

template <typename Visit>
void for_each_element(const Tensor& tensor, Visit&& visit) {
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    visit(index);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < tensor.shape[dim]) break;
      index[dim] = 0;
    }
  }
}

Tensor converted(const Tensor& from, DType dtype);

double noise_of(DType dtype);  // relative
// Which elements got noise: not those that are exact. `exact` may be null.
std::vector<bool> add_noise(Tensor& tensor, Random& random, double size, const Tensor* exact);

// Values below `limit` in size become 0.
void flush_to_zero(Tensor& tensor, double limit);

// The same call with floating operands below f64 in another dtype; null where that changes the operator.
struct Promoted {
  Graph graph{"promoted"};
  Node* node = nullptr;
};
Promoted promote(const Node& node, bool (*is_promoted)(DType), DType to);

// The node on operands that are converted to the dtypes that it takes.
std::vector<Tensor> evaluate_promoted(const Node& node, std::span<const Tensor* const> operands,
                                      const SymbolValues& symbols);

}  // namespace ingot::core::random_graphs
