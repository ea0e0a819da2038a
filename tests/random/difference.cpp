// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tests/random/reference.h"

namespace ingot::core::random_graphs {
namespace {

constexpr double kNoiseFactor =
    24;  // what a trajectory is off by chance, against what an order of sums may be

struct Rule {
  double relative, absolute;
};

// A few units in the last place: of the math functions, and of what the noise may by chance not show.
Rule rule_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {std::ldexp(1, -46), std::ldexp(1, -1070)};
    case DType::kF16:
      return {std::ldexp(1, -9), std::ldexp(1, -23)};
    case DType::kBF16:
      return {std::ldexp(1, -6), std::ldexp(1, -132)};
    default:
      return {std::ldexp(1, -19), std::ldexp(1, -145)};
  }
}

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

// Whether `got` may stand where the interpreter has `wanted` and noise makes `noisy` of it.
bool is_allowed(double got, double wanted, std::span<const double> noisy, const Rule& rule) {
  if (got == wanted) return true;
  double spread = 0;
  bool class_seen = same_class(got, wanted), is_stable = true;
  for (const double value : noisy) {
    class_seen |= same_class(got, value);
    is_stable &= same_class(value, wanted);
    if (std::isfinite(value) && std::isfinite(wanted)) spread = std::max(spread, std::abs(value - wanted));
  }
  if (!is_stable) return true;  // overflows or not, as the order of sums has it
  if (!class_seen || std::isnan(wanted) || std::isinf(wanted)) return class_seen;
  return std::abs(got - wanted) <= rule.absolute + rule.relative * std::abs(wanted) + kNoiseFactor * spread;
}

// Compared as integers: as doubles, those beyond 2^53 would hide that noise changes them.
bool is_allowed_integer(int64_t got, int64_t wanted, const std::vector<const Tensor*>& noisy,
                        const std::vector<int64_t>& index) {
  const auto other = [&](const Tensor* each) { return read_integer(each->view(), index) != wanted; };
  return got == wanted || std::ranges::any_of(noisy, other);
}

std::string difference(const Tensor& got, const Tensor& wanted, const std::vector<const Tensor*>& noisy) {
  if (got.dtype != wanted.dtype || got.shape != wanted.shape) return "has another type";
  std::vector<int64_t> index(got.shape.size(), 0);
  std::string text;
  int64_t count = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    std::vector<double> values;
    for (const Tensor* tensor : noisy) values.push_back(read_double(tensor->view(), index));
    const double a = read_double(got.view(), index), b = read_double(wanted.view(), index);
    const bool allowed = is_floating(got.dtype)
                             ? is_allowed(a, b, values, rule_of(got.dtype))
                             : is_allowed_integer(read_integer(got.view(), index),
                                                  read_integer(wanted.view(), index), noisy, index);
    if (!allowed && count++ == 0)
      text = fmt::format("[{}] is {} and not {}, with noise {}", fmt::join(index, ","), a, b, values);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < got.shape[dim]) break;
      index[dim] = 0;
    }
  }
  return count == 0 ? "" : fmt::format("{} ({} of {} elements)", text, count, got.elements());
}

}  // namespace

std::string difference(const Reference& reference, const Trajectory& results) {
  for (size_t run = 0; run < results.size(); ++run) {
    const Evaluation &got = results[run], &wanted = reference.exact[run];
    for (size_t i = 0; i < wanted.outputs.size(); ++i) {
      std::vector<const Tensor*> noisy;
      for (const Trajectory& each : reference.noisy) noisy.push_back(&each[run].outputs[i]);
      const std::string text = difference(got.outputs.at(i), wanted.outputs[i], noisy);
      if (!text.empty()) return fmt::format("run {}, output {}: {}", run, i, text);
    }
    for (const auto& [name, value] : wanted.updates) {
      std::vector<const Tensor*> noisy;
      for (const Trajectory& each : reference.noisy) noisy.push_back(&each[run].updates.at(name));
      const std::string text = difference(got.updates.at(name), value, noisy);
      if (!text.empty()) return fmt::format("run {}, state {}: {}", run, name, text);
    }
  }
  return "";
}

}  // namespace ingot::core::random_graphs
