// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/library_epilogue.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "loops/functions.h"

namespace ingot::core::cuda {
namespace {

using loops::Expr;
using Kind = loops::ExprNode::Kind;

bool is_constant(const Expr& value, double number) {
  return value->kind == Kind::kConstant && is_floating(value->dtype) && value->number == number;
}

bool is_binary(const Expr& value, loops::Binary op) {
  return value->kind == Kind::kBinary && value->binary == op;
}

bool is_function(const Expr& value, const loops::Function& function) {
  return value->kind == Kind::kFunction && value->function == &function;
}

// The argument of max(0, x), or null.
Expr argument_of_relu(const Expr& value) {
  const bool is_relu = is_binary(value, loops::Binary::kMaximum) && is_constant(value->operands[0], 0);
  return is_relu ? value->operands[1] : nullptr;
}

// The argument of x / (1 + exp(-x)), or null.
Expr argument_of_silu(const Expr& value) {
  if (!is_binary(value, loops::Binary::kDivide)) return nullptr;
  const Expr &x = value->operands[0], &below = value->operands[1];
  if (!is_binary(below, loops::Binary::kAdd) || !is_constant(below->operands[0], 1)) return nullptr;
  const Expr& exponential = below->operands[1];
  if (!is_function(exponential, loops::functions::exp)) return nullptr;
  const Expr& negative = exponential->operands[0];
  const bool is_negative = negative->kind == Kind::kUnary && negative->unary == loops::Unary::kNegate;
  return is_negative && negative->operands[0] == x ? x : nullptr;
}

struct Activated {
  LibraryActivation activation;
  Expr argument;
  double bound = 0;
};

Activated read_activation(const Expr& value) {
  if (Expr x = argument_of_relu(value)) return {LibraryActivation::kRelu, x};
  if (is_binary(value, loops::Binary::kMinimum) && value->operands[0]->kind == Kind::kConstant) {
    const double bound = value->operands[0]->number;
    if (Expr x = argument_of_relu(value->operands[1]); x != nullptr && std::isfinite(bound) && bound > 0)
      return {LibraryActivation::kBoundedRelu, x, bound};
  }
  if (Expr x = argument_of_silu(value)) return {LibraryActivation::kSilu, x};
  constexpr std::pair<const loops::Function*, LibraryActivation> kFunctions[] = {
      {&loops::functions::sigmoid, LibraryActivation::kSigmoid},
      {&loops::functions::tanh, LibraryActivation::kTanh},
      {&loops::functions::gelu, LibraryActivation::kGelu}};
  for (const auto& [function, activation] : kFunctions)
    if (is_function(value, *function)) return {activation, value->operands[0]};
  return {LibraryActivation::kNone, value};
}

class EpilogueReader {
 public:
  EpilogueReader(const Node& node, size_t column_dim, const Layout& layout, const loops::Kernel& epilogue)
      : epilogue_(epilogue), result_(node.results[0]->type), column_dim_(column_dim), layout_(layout) {}

  std::optional<LibraryEpilogue> read() {
    if (epilogue_.stages.size() != 1 || epilogue_.parallel.size() != result_.rank()) return std::nullopt;
    const loops::Stage& stage = epilogue_.stages[0];
    if (!stage.store || !stage.loops.empty() || !stage.bindings.empty() ||
        stage.combine != loops::Combine::kNone)
      return std::nullopt;
    std::vector<Dim> index;
    for (const loops::Loop& loop : epilogue_.parallel) index.push_back(Dim::symbol(loop.variable));
    place_ = storage_offset(layout_, result_.shape, index);
    column_ = index[column_dim_];
    found_.result = stage.store->buffer;
    if (!is_plain(found_.result, result_.dtype) || place(found_.result, stage.store->index) != place_)
      return std::nullopt;
    const Activated activated = read_activation(unconverted(stage.value));
    found_.activation = activated.activation;
    found_.bound = activated.bound;
    if (!take(activated.argument) || !has_sums_) return std::nullopt;
    return found_;
  }

 private:
  const TensorType& type(int64_t buffer) const { return epilogue_.buffers[static_cast<size_t>(buffer)].type; }
  bool is_plain(int64_t buffer, DType dtype) const {
    return type(buffer).dtype == dtype && type(buffer).layout.is_permutation();
  }
  Dim place(int64_t buffer, const std::vector<Dim>& index) const {
    return storage_offset(type(buffer).layout, type(buffer).shape, index);
  }

  // Without roundings to what the library rounds to, once.
  Expr unconverted(Expr value) const {
    while (value->kind == Kind::kConvert && (value->dtype == DType::kF32 || value->dtype == result_.dtype))
      value = value->operands[0];
    return value;
  }

  bool take(const Expr& given) {
    const Expr value = unconverted(given);
    if (is_binary(value, loops::Binary::kAdd)) return take(value->operands[0]) && take(value->operands[1]);
    if (value->kind != Kind::kLoad) return false;
    if (value->buffer == 0)
      return !std::exchange(has_sums_, true) &&
             storage_offset(layout_, result_.shape, value->index) == place_;
    if (!is_plain(value->buffer, result_.dtype) || value->buffer == found_.result) return false;
    const Dim at = place(value->buffer, value->index);
    int64_t& position = at == column_ ? found_.bias : found_.added;
    if ((at != column_ && at != place_) || position != kNoBuffer) return false;
    position = value->buffer;
    return true;
  }

  const loops::Kernel& epilogue_;
  const TensorType& result_;
  const size_t column_dim_;
  const Layout& layout_;
  Dim place_, column_;
  bool has_sums_ = false;
  LibraryEpilogue found_;
};

}  // namespace

std::optional<LibraryEpilogue> read_library_epilogue(const Node& contraction, size_t column_dim,
                                                     const Layout& layout, const loops::Kernel& epilogue) {
  return EpilogueReader(contraction, column_dim, layout, epilogue).read();
}

}  // namespace ingot::core::cuda
