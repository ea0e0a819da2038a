// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/recorded.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "importers/aten/program/node_error.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

constexpr int kSamples = 24;
constexpr int64_t kLargestSample = 4096;  // products of sizes must not overflow

int64_t sampled_size(const SymbolInfo& symbol, int sample, std::mt19937& random) {
  const int64_t low = std::clamp<int64_t>(symbol.range.min, 0, kLargestSample);
  const int64_t high = std::clamp<int64_t>(symbol.range.max, low, std::max(low, kLargestSample));
  if (sample == 0) return std::clamp(symbol.typical.value_or(low), low, high);
  if (sample == 1) return low;
  return std::uniform_int_distribution<int64_t>(low,
                                                sample % 2 == 0 ? std::min(low + 32, high) : high)(random);
}

bool has_unknown_symbol(const Dim& dim, const SymbolTable& symbols) {
  return std::ranges::any_of(dim.symbols(), [&](const std::string& name) { return !symbols.contains(name); });
}

bool are_equal(const Dim& a, const Dim& b, const SymbolTable& symbols) {
  if (a == b || provably_equal(a, b, symbols)) return true;
  // A data-dependent size has different names in the two.
  if (has_unknown_symbol(a, symbols) || has_unknown_symbol(b, symbols)) return true;
  const Dim difference = a - b;
  std::mt19937 random;  // the same seed each time: imports are deterministic
  for (int sample = 0; sample < kSamples; ++sample) {
    SymbolValues sizes;
    for (const std::string& name : difference.symbols())
      sizes[name] = sampled_size(symbols.find(name)->second, sample, random);
    try {
      if (evaluate(difference, sizes) != 0) return false;
    } catch (const UserError&) {  // a division by zero, or an overflow: not a possible size
      continue;
    }
  }
  return true;
}

bool are_equal(const Shape& a, const Shape& b, const SymbolTable& symbols) {
  return std::ranges::equal(a, b, [&](const Dim& x, const Dim& y) { return are_equal(x, y, symbols); });
}

// Torch 2.11 records the dtype of the values for places and counts, too.
bool is_recorded_wrongly(const Node& node, size_t result) {
  constexpr std::string_view kUnique[] = {"aten._unique2.default", "aten.unique_consecutive.default",
                                          "aten.unique_dim.default", "aten.unique_dim_consecutive.default"};
  return result > 0 && std::ranges::find(kUnique, node.target) != std::end(kUnique);
}

[[noreturn]] void refuse(const Node& node, const std::string& made, const std::string& recorded) {
  throw UnsupportedError(
      {.code = "INGOT-N523",
       .message =
           fmt::format("{}: Ingot computes {}, but the program recorded {}", node.target, made, recorded),
       .node = node.name,
       .source_line = source_text(node.source),
       .advice = "torch.compile and ingot.compile run such a node in torch; please report it"});
}

}  // namespace

TensorType imported_type(const TensorMeta& meta) {
  TensorType type{component_of(meta.dtype), meta.shape, {}};
  if (is_complex(meta.dtype)) type.shape.emplace_back(2);
  return type;
}

void require_recorded(const Node& node, size_t result, const Value& recorded, const ImportedValue& made,
                      const SymbolTable& symbols) {
  if (const auto* value = std::get_if<core::Value*>(&made); value && recorded.kind == ValueKind::kTensor) {
    TensorType expected = imported_type(recorded.tensor);
    if (is_recorded_wrongly(node, result)) expected.dtype = DType::kI64;
    const TensorType& type = (*value)->type;
    if (type.dtype == expected.dtype && are_equal(type.shape, expected.shape, symbols)) return;
    refuse(node, to_string(TensorType{type.dtype, type.shape, {}}), to_string(expected));
  }
  if (const auto* dim = std::get_if<Dim>(&made); dim && recorded.integer) {
    if (!are_equal(*dim, *recorded.integer, symbols))
      refuse(node, dim->to_string(), recorded.integer->to_string());
  }
}

}  // namespace ingot::core::aten
