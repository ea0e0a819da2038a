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

// Of functions whose terms cancel beside their zeros. A sum of exponentials is 1 or more: where its logarithm
// is near 0, a unit of the sum is far more than one of the result.
void add_absolute_noise(Tensor& result, Random& random);

// 1 + erf(x) cancels for small results; x times what that loses is what torch loses too.
void add_tail_noise(Tensor& result, const Tensor& x, Random& random);

// Whether a sum is a whole number or nearly one is an accident of its order; negative bases have other powers
// then.
Tensor whole_exponents(const Tensor& exponents);

// `changed`, and what differs between the two.
std::vector<bool> inexact(const Tensor& before, const Tensor& after, std::vector<bool> changed);

// Where nodes are fused, what is between them is not rounded to halves, and does not overflow as they do: in
// trajectory 0 infinities are 0.
void soften(Tensor& tensor, const std::vector<bool>& changed, Random& random, int trajectory);

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
