// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/folding.h"

#include <algorithm>
#include <array>
#include <map>

#include "evaluate/evaluate.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

bool not_negative(const Dim& dim, const SymbolTable& symbols) { return range_of(dim, symbols).min >= 0; }

using Operand = const Dim&;
using Folded = std::optional<Dim>;  // nullopt: not known for all sizes

// Towards zero, as in C: the same as towards minus infinity where neither is negative.
Folded divided(Operand a, Operand b, const SymbolTable& symbols) {
  if (b == Dim(0) || b == Dim(-1)) return b == Dim(0) ? std::nullopt : Folded(Dim(0) - a);
  if (a.is_constant() && b.is_constant()) return Dim(*a.constant() / *b.constant());
  const bool is_simple = not_negative(a, symbols) && range_of(b, symbols).min > 0;
  return is_simple ? Folded(floor_divide(a, b)) : std::nullopt;
}

Folded remainder_of(Operand a, Operand b, const SymbolTable& symbols) {
  const bool is_simple = range_of(b, symbols).min > 0;
  return is_simple ? Folded(modulo(a, b)) : std::nullopt;
}

Folded truth(bool yes, bool no) {
  if (yes) return Dim(1);
  return no ? Folded(Dim(0)) : std::nullopt;
}

Folded is_equal(Operand a, Operand b, const SymbolTable& symbols) {
  return truth(provably_equal(a, b, symbols), provably_less(a, b, symbols) || provably_less(b, a, symbols));
}
Folded is_below(Operand a, Operand b, const SymbolTable& symbols) {
  return truth(provably_less(a, b, symbols), provably_less(b, a + 1, symbols));
}
Folded is_above(Operand a, Operand b, const SymbolTable& symbols) { return is_below(b, a, symbols); }
Folded opposite(Folded value) { return value ? Folded(Dim(1) - *value) : std::nullopt; }
Folded is_at_most(Operand a, Operand b, const SymbolTable& symbols) {
  return opposite(is_below(b, a, symbols));
}
Folded is_at_least(Operand a, Operand b, const SymbolTable& symbols) {
  return opposite(is_below(a, b, symbols));
}

struct Pairwise {
  std::string_view name;
  Folded (*fold)(Operand a, Operand b, const SymbolTable& symbols);
};
constexpr auto kPairwise = std::to_array<Pairwise>({
    {"Add", [](Operand a, Operand b, const SymbolTable&) { return Folded(a + b); }},
    {"And", [](Operand a, Operand b, const SymbolTable&) { return Folded(a * b); }},
    {"Div", divided},
    {"Equal", is_equal},
    {"Greater", is_above},
    {"GreaterOrEqual", is_at_least},
    {"Less", is_below},
    {"LessOrEqual", is_at_most},
    {"Max", [](Operand a, Operand b, const SymbolTable&) { return Folded(maximum(a, b)); }},
    {"Min", [](Operand a, Operand b, const SymbolTable&) { return Folded(minimum(a, b)); }},
    {"Mod", remainder_of},
    {"Mul", [](Operand a, Operand b, const SymbolTable&) { return Folded(a * b); }},
    {"Or", [](Operand a, Operand b, const SymbolTable&) { return Folded(maximum(a, b)); }},
    {"ReduceMax", [](Operand a, Operand b, const SymbolTable&) { return Folded(maximum(a, b)); }},
    {"ReduceMin", [](Operand a, Operand b, const SymbolTable&) { return Folded(minimum(a, b)); }},
    {"ReduceProd", [](Operand a, Operand b, const SymbolTable&) { return Folded(a * b); }},
    {"ReduceSum", [](Operand a, Operand b, const SymbolTable&) { return Folded(a + b); }},
    {"Sub", [](Operand a, Operand b, const SymbolTable&) { return Folded(a - b); }},
});

// Operators that move elements, with the number of inputs, from the first on, whose elements they move; -1:
// all.
struct Mover {
  std::string_view name;
  int64_t moved;
};
constexpr auto kMovers = std::to_array<Mover>({{"Concat", -1},
                                               {"Expand", 1},
                                               {"Flatten", 1},
                                               {"Gather", 1},
                                               {"GatherElements", 1},
                                               {"Identity", 1},
                                               {"Reshape", 1},
                                               {"Slice", 1},
                                               {"Squeeze", 1},
                                               {"Tile", 1},
                                               {"Transpose", 1},
                                               {"Unsqueeze", 1}});

template <typename Table>
auto entry_of(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Table::value_type::name);
  return found == table.end() ? nullptr : &*found;
}

// A node alone: the elements that it moves are numbered, and the numbers in its result say which went where.
class NumberedScope final : public Scope {
 public:
  NumberedScope(Scope& outer, const std::vector<std::string>& inputs, size_t moved) : outer_(outer) {
    for (size_t i = 0; i < moved; ++i) {
      if (numbered_.contains(inputs[i])) continue;
      Sizes& sizes = numbered_.emplace(inputs[i], outer.sizes(inputs[i]).value()).first->second;
      for (Dim& element : sizes.elements) {
        elements_.push_back(element);
        element = Dim(static_cast<int64_t>(elements_.size()) - 1);
      }
      sizes.dtype = DType::kI64;
    }
  }

  Graph& graph() override { return graph_; }
  bool is_outermost() const override { return false; }
  Value* tensor(const std::string& name) override {
    const std::optional<Tensor> known = literal(name);
    if (!known) refuse("it moves elements as values of the run say");
    return graph_.add_constant(*known);
  }
  std::optional<Tensor> literal(const std::string& name) override {
    const auto found = numbered_.find(name);
    return found == numbered_.end() ? outer_.literal(name) : to_tensor(found->second);
  }
  std::optional<Tensor> literal(Value*) override { return std::nullopt; }
  std::optional<Sizes> sizes(const std::string& name) override {
    const auto found = numbered_.find(name);
    return found == numbered_.end() ? outer_.sizes(name) : found->second;
  }
  DType element_type(const Value* value) override { return value->type.dtype; }
  Tensor read(const TensorDef& tensor) override { return outer_.read(tensor); }
  void give(const std::string&, Value* value) override { graph_.outputs = {value}; }
  void give(const std::string&, Sizes) override { refuse("it does not move elements"); }
  void run(const GraphDef&, const std::vector<std::string>&) override { refuse("it does not move elements"); }
  std::unique_ptr<Scope> inside(Graph&) override { refuse("it does not move elements"); }

  Sizes result(DType dtype) {
    const Tensor numbers = evaluate(graph_, {}, {}).outputs.at(0);
    Sizes sizes = sizes_of(numbers).value();
    sizes.dtype = dtype;
    for (Dim& element : sizes.elements) element = elements_.at(static_cast<size_t>(*element.constant()));
    return sizes;
  }

 private:
  Scope& outer_;
  Graph graph_{"sizes"};
  std::map<std::string, Sizes> numbered_;
  std::vector<Dim> elements_;
};

std::optional<Sizes> moved(Call& call, const Converter& converter, size_t count) {
  NumberedScope scope(call.scope(), call.node().inputs, count);
  Call inner(scope, call.node(), call.opset(), converter.op);
  converter.convert(inner);
  return scope.result(call.sizes(0)->dtype);
}

// Index of an element of `from`, aligned at the right, for the element `index` of `to`.
size_t broadcast_index(const std::vector<int64_t>& from, const std::vector<int64_t>& to, size_t index) {
  size_t result = 0, stride = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    const auto size = static_cast<size_t>(to[to.size() - 1 - i]), at = index % size;
    index /= size;
    if (i >= from.size()) continue;
    const int64_t own = from[from.size() - 1 - i];
    result += own == 1 ? 0 : at * stride;
    stride *= static_cast<size_t>(own);
  }
  return result;
}

Shape as_shape(const std::vector<int64_t>& sizes) { return Shape(sizes.begin(), sizes.end()); }

std::vector<int64_t> joint_shape(const std::vector<Sizes>& operands) {
  Shape shape;
  for (const Sizes& operand : operands) shape = broadcast(shape, as_shape(operand.shape));
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.constant().value());
  return sizes;
}

template <typename Fold>
std::optional<Sizes> elementwise(const std::vector<Sizes>& operands, DType dtype, const Fold& fold) {
  Sizes result{dtype, joint_shape(operands), {}};
  int64_t count = 1;
  for (const int64_t size : result.shape) count *= size;
  if (count > static_cast<int64_t>(kMostSizes)) return std::nullopt;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::vector<Dim> elements;
    for (const Sizes& operand : operands)
      elements.push_back(operand.elements.at(broadcast_index(operand.shape, result.shape, i)));
    Folded folded = fold(elements);
    if (!folded) return std::nullopt;
    result.elements.push_back(std::move(*folded));
  }
  return result;
}

// All elements of one operand, as one.
std::optional<Sizes> reduced(Call& call, const Sizes& operand, const Pairwise& pairwise) {
  const bool is_line = operand.shape.size() == 1 && !operand.elements.empty();
  if (!is_line || call.flag("noop_with_empty_axes")) return std::nullopt;
  Folded total = operand.elements[0];
  for (size_t i = 1; i < operand.elements.size() && total; ++i)
    total = pairwise.fold(*total, operand.elements[i], call.graph().symbols);
  if (!total) return std::nullopt;
  const bool keeps = call.flag("keepdims", true);
  return Sizes{operand.dtype, keeps ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {*total}};
}

bool is_comparison(std::string_view name) {
  return name == "Equal" || name.starts_with("Less") || name.starts_with("Greater");
}

std::optional<Sizes> by_formula(Call& call, std::string_view name, const std::vector<Sizes>& operands) {
  const SymbolTable& symbols = call.graph().symbols;
  const DType dtype = operands[0].dtype;
  if (name == "Cast") {
    const auto to = call.attribute_integer("to", 0);  // between int32 and int64
    if ((to != 6 && to != 7) || dtype == DType::kBool) return std::nullopt;
    Sizes result = operands[0];
    result.dtype = to == 6 ? DType::kI32 : DType::kI64;
    return result;
  }
  if (name == "Neg") return elementwise(operands, dtype, [](const auto& x) { return Folded(Dim(0) - x[0]); });
  if (name == "Not") return elementwise(operands, dtype, [](const auto& x) { return Folded(Dim(1) - x[0]); });
  if (name == "Where" && operands.size() == 3) {
    return elementwise(operands, operands[1].dtype, [](const auto& x) {
      return x[0].is_constant() ? Folded(x[0] == Dim(0) ? x[2] : x[1]) : std::nullopt;
    });
  }
  const Pairwise* pairwise = entry_of(kPairwise, name);
  if (pairwise == nullptr) return std::nullopt;
  if (name.starts_with("Reduce")) return reduced(call, operands[0], *pairwise);
  return elementwise(operands, is_comparison(name) ? DType::kBool : dtype, [&](const auto& x) {
    Folded total = x[0];
    for (size_t i = 1; i < x.size() && total; ++i) total = pairwise->fold(*total, x[i], symbols);
    return total;
  });
}

bool has_formula(std::string_view name) {
  return name == "Cast" || name == "Neg" || name == "Not" || name == "Where" ||
         entry_of(kPairwise, name) != nullptr;
}

}  // namespace

std::optional<Sizes> fold_sizes(Call& call, const Converter& converter) {
  const Mover* mover = entry_of(kMovers, converter.name);
  const bool is_reduction = converter.name.starts_with("Reduce");
  if ((mover == nullptr && !has_formula(converter.name)) || call.inputs() == 0 || !call.wants(0))
    return std::nullopt;
  const size_t count = mover == nullptr   ? (is_reduction ? 1 : call.inputs())
                       : mover->moved < 0 ? call.inputs()
                                          : static_cast<size_t>(mover->moved);
  bool is_symbolic = false;
  std::vector<Sizes> operands;
  for (size_t i = 0; i < count; ++i) {
    std::optional<Sizes> sizes = call.has(i) ? call.sizes(i) : std::nullopt;
    if (!sizes) return std::nullopt;
    is_symbolic |= !sizes->is_constant();
    operands.push_back(std::move(*sizes));
  }
  if (!is_symbolic) return std::nullopt;  // constants are folded where they are needed
  try {
    return mover != nullptr ? moved(call, converter, count) : by_formula(call, converter.name, operands);
  } catch (const UserError&) {
    return std::nullopt;  // as data it may still be right
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

}  // namespace ingot::core::onnx
