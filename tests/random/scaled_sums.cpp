// SPDX-License-Identifier: Apache-2.0
#include "tests/random/scaled_sums.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/scaled_linear.h"
#include "tests/random/noise.h"

namespace ingot::core::random_graphs {
namespace {

using Index = std::vector<int64_t>;

Tensor mapped(const Tensor& from, const std::function<double(const Index&, double)>& value_of) {
  Tensor to = make_tensor(from.dtype, from.shape);
  for_each_element(from, [&](const Index& index) {
    write_double(to.view(), index, value_of(index, read_double(from.view(), index)));
  });
  return to;
}

double largest_of(const Tensor* tensor) {
  double largest = 0;
  if (tensor == nullptr) return largest;
  for_each_element(*tensor, [&](const Index& index) {
    const double size = std::abs(read_double(tensor->view(), index));
    if (std::isfinite(size)) largest = std::max(largest, size);
  });
  return largest;
}

// The largest sum of |x| over a row.
double largest_row(const Tensor& x) {
  Index row;
  double sum = 0, largest = 0;
  for_each_element(x, [&](const Index& index) {
    if (index.back() == 0) sum = 0;
    const double size = std::abs(read_double(x.view(), index));
    if (std::isfinite(size)) sum += size;
    largest = std::max(largest, sum);
  });
  return largest;
}

bool may_overflow(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor* zeros = operands.size() > ops::kZeroPoints ? operands[ops::kZeroPoints] : nullptr;
  const double weight = largest_of(operands[ops::kScaledWeight]) + largest_of(zeros) +
                        std::abs(static_cast<double>(node.attributes<ops::ScaledLinear>().offset));
  const double scale = std::max(largest_of(operands[ops::kScales]), 1.0);
  return largest_row(*operands[ops::kScaledX]) * weight * scale >= std::numeric_limits<float>::max() / 8;
}

}  // namespace

ScaledSums scaled_sums(const Node& node, std::span<const Tensor* const> operands,
                       const SymbolValues& symbols) {
  const Tensor &x = *operands[ops::kScaledX], &scales = *operands[ops::kScales];
  const Tensor ones = mapped(scales, [](const Index&, double) { return 1; });
  const int64_t blocks = scales.shape[1], block = x.shape.back() / blocks;
  std::vector<const Tensor*> used(operands.begin(), operands.end());
  used[ops::kScales] = &ones;
  ScaledSums result{{}, may_overflow(node, operands)};
  for (int64_t g = 0; g < blocks; ++g) {
    const Tensor part =
        mapped(x, [&](const Index& index, double value) { return index.back() / block == g ? value : 0; });
    used[ops::kScaledX] = &part;
    const Tensor sums = evaluate_node(node, used, symbols)[0];
    if (g == 0) result.sums = mapped(sums, [](const Index&, double) { return 0; });
    result.sums = mapped(result.sums, [&](const Index& index, double total) {
      const double scale = read_double(scales.view(), Index{index.back(), g});
      return static_cast<float>(total) +
             static_cast<float>(read_double(sums.view(), index)) * static_cast<float>(scale);
    });
  }
  return result;
}

}  // namespace ingot::core::random_graphs
