// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/random_inputs.h"

#include <fmt/core.h>

#include <cmath>
#include <random>

#include "ops/model_source.h"

namespace ingot::core {
namespace {

// Calls `visit` with every index of a shape.
template <typename Visit>
void for_each_index(const std::vector<int64_t>& shape, Visit&& visit) {
  std::vector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  for (; count > 0; --count) {
    visit(index);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
}

// Floats in [-2, 2], integers that are indices of small dims too.
Tensor random_tensor(const TensorType& type, const SymbolValues& symbols, std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, symbols));
  Tensor tensor = make_tensor(type.dtype, shape);
  const TensorView view = tensor.view();
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    if (is_floating(type.dtype)) {
      write_double(view, index, std::uniform_real_distribution<double>(-2, 2)(random));
    } else {
      write_integer(view, index, static_cast<int64_t>(random() % 2));
    }
  });
  return tensor;
}

// Sizes inside the symbols' ranges, small and not all equal.
SymbolValues sizes(const SymbolTable& symbols) {
  SymbolValues values;
  int64_t next = 3;
  for (const auto& [name, info] : symbols) values[name] = std::clamp(next++, info.range.min, info.range.max);
  return values;
}

void add_weights(const Graph& graph, const SymbolValues& symbols, std::mt19937& random, TensorMap& weights) {
  for (const auto& node : graph.nodes()) {
    for (const auto& nested : node->graphs) add_weights(*nested, symbols, random, weights);
    if (!node->op->traits.has(Trait::kSource) || node->literal != nullptr) continue;
    Tensor value = random_tensor(node->results[0]->type, symbols, random);
    weights.emplace(node->attributes<ops::ModelSource>().name, std::move(value));
  }
}

std::string difference(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype != b.dtype || a.shape != b.shape) return "types differ";
  std::string text;
  for_each_index(a.shape, [&](const std::vector<int64_t>& index) {
    const double x = read_double(a.view(), index), y = read_double(b.view(), index);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x));
    if (!same && text.empty()) text = fmt::format("{} and {}", x, y);
  });
  return text;
}

}  // namespace

RandomInputs random_inputs(const Graph& graph) {
  std::mt19937 random(17);
  const SymbolValues symbols = sizes(graph.symbols);
  RandomInputs result;
  for (const Value* input : graph.inputs())
    result.inputs.push_back(random_tensor(input->type, symbols, random));
  add_weights(graph, symbols, random, result.weights);
  return result;
}

std::string difference(const Evaluation& a, const Evaluation& b, double tolerance) {
  if (a.outputs.size() != b.outputs.size() || a.updates.size() != b.updates.size()) return "counts differ";
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const std::string text = difference(a.outputs[i], b.outputs[i], tolerance);
    if (!text.empty()) return fmt::format("output {}: {}", i, text);
  }
  for (const auto& [name, value] : a.updates) {
    const std::string text =
        b.updates.contains(name) ? difference(value, b.updates.at(name), tolerance) : "missing";
    if (!text.empty()) return fmt::format("state {}: {}", name, text);
  }
  return "";
}

}  // namespace ingot::core
