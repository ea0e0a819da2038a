// SPDX-License-Identifier: Apache-2.0
// What composites compute from numbers, sizes, texts and lists, which are known during an import.
#include <algorithm>
#include <limits>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/composites/evaluation.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/schema/schemas.h"
#include "support/error.h"
#include "types/predicate.h"

namespace ingot::core::aten {
namespace {

using Values = std::span<const Argument>;
constexpr int64_t kLongestRange = 4096;

const Shape& shape_of(Evaluation& evaluation, Values values) {
  return evaluation.shape(value_at(evaluation, values, 0));
}

Argument rank(Evaluation& evaluation, Values values) {
  return {static_cast<int64_t>(shape_of(evaluation, values).size())};
}
Argument shape(Evaluation& evaluation, Values values) {
  return size_list(evaluation, shape_of(evaluation, values));
}
int64_t axis_in(Evaluation& evaluation, Values values) {
  const auto rank = static_cast<int64_t>(shape_of(evaluation, values).size());
  return checked_axis(evaluation, evaluation.integer(value_at(evaluation, values, 1)), rank);
}
Argument axis(Evaluation& evaluation, Values values) { return {axis_in(evaluation, values)}; }
Argument size(Evaluation& evaluation, Values values) {
  const auto at = static_cast<size_t>(axis_in(evaluation, values));
  return evaluation.argument_of(shape_of(evaluation, values)[at]);
}
Argument element_count(Evaluation& evaluation, Values values) {
  return evaluation.argument_of(product(shape_of(evaluation, values)));
}
// A number from the sizes in a list.
template <typename Combine>
Argument combined(Evaluation& evaluation, Values values, Dim result, const Combine& combine) {
  for (const Argument& size : evaluation.list_in(value_at(evaluation, values, 0)))
    result = combine(result, evaluation.size_of(size));
  return evaluation.argument_of(result);
}
Argument product_of_sizes(Evaluation& evaluation, Values values) {
  return combined(evaluation, values, 1, [](const Dim& a, const Dim& b) { return a * b; });
}
Argument total(Evaluation& evaluation, Values values) {
  return combined(evaluation, values, 0, [](const Dim& a, const Dim& b) { return a + b; });
}
Argument may_be_negative(Evaluation& evaluation, Values values) {
  const Dim number = evaluation.size_of(value_at(evaluation, values, 0));
  return {!provably_not_negative(number, evaluation.call().graph().symbols)};
}
// The shape that shapes broadcast to, aligned at the right; nodes check that they do.
Argument broadcast(Evaluation& evaluation, Values values) {
  ArgumentList all;
  for (const Argument& shape : evaluation.list_in(value_at(evaluation, values, 0))) {
    const ArgumentList& sizes = evaluation.list_in(shape);
    if (sizes.size() > all.size()) all.insert(all.begin(), sizes.size() - all.size(), {int64_t{1}});
    const size_t added = all.size() - sizes.size();
    for (size_t i = 0; i < sizes.size(); ++i)
      if (evaluation.size_of(all[added + i]) == Dim(1)) all[added + i] = sizes[i];
  }
  return {std::move(all)};
}
Argument refuse(Evaluation& evaluation, Values values) {
  const auto* reason = std::get_if<std::string>(&value_at(evaluation, values, 0).value);
  evaluation.call().refuse(reason == nullptr ? "an argument of this kind" : *reason);
}
Argument length(Evaluation& evaluation, Values values) {
  const Argument& value = value_at(evaluation, values, 0);
  if (const auto* list = std::get_if<ArgumentList>(&value.value)) return {static_cast<int64_t>(list->size())};
  return {int64_t{1}};  // a number counts for a list of one
}
Argument range(Evaluation& evaluation, Values values) {
  const int64_t count = evaluation.integer(value_at(evaluation, values, 0));
  evaluation.call().require(count <= kLongestRange, "a very long list");
  ArgumentList list;
  for (int64_t i = 0; i < count; ++i) list.push_back({i});
  return {std::move(list)};
}
Argument dtype_of(Evaluation& evaluation, Values values) {
  return {evaluation.dtype(value_at(evaluation, values, 0))};
}
// What torch recorded for the result of a call without a dtype.
Argument default_dtype(Evaluation& evaluation, Values values) {
  return {evaluation.call().result_meta(result_index(evaluation, values)).dtype};
}
Argument is_floating_tensor(Evaluation& evaluation, Values values) {
  return {is_floating(evaluation.dtype(value_at(evaluation, values, 0)))};
}
Argument largest_number(Evaluation& evaluation, Values values) {
  switch (evaluation.dtype(value_at(evaluation, values, 0))) {
    case DType::kF16:
      return {65504.0};
    case DType::kBF16:
      return {0x1.fep127};
    case DType::kF32:
      return {double{std::numeric_limits<float>::max()}};
    default:
      return {std::numeric_limits<double>::max()};
  }
}
// None does not count.
void add_promotion(Evaluation& evaluation, const Argument& value, std::vector<PromotionOperand>& operands) {
  using Rank = PromotionOperand::Rank;
  if (evaluation.is_tensor(value)) {
    const bool has_dims = !evaluation.shape(value).empty();
    operands.push_back({evaluation.dtype(value), has_dims ? Rank::kTensor : Rank::kScalarTensor});
  } else if (const auto* list = std::get_if<ArgumentList>(&value.value)) {
    for (const Argument& item : *list) add_promotion(evaluation, item, operands);
  } else if (std::holds_alternative<bool>(value.value) || evaluation.is_bool_symbol(value)) {
    operands.push_back({DType::kBool, Rank::kNumber});
  } else if (!std::holds_alternative<None>(value.value)) {
    const bool is_real = std::holds_alternative<double>(value.value) || evaluation.is_real_symbol(value);
    operands.push_back({is_real ? DType::kF64 : DType::kI64, Rank::kNumber});
  }
}
// The dtype of arithmetic on tensors and numbers.
Argument result_type(Evaluation& evaluation, Values values) {
  std::vector<PromotionOperand> operands;
  for (const Argument& value : values) add_promotion(evaluation, value, operands);
  return {result_dtype(operands)};
}

// The dtype in which torch computes the overload for these operands.
Argument promoted_type(Evaluation& evaluation, Values values) {
  const DType dtype = std::get<DType>(result_type(evaluation, values).value);
  const std::optional<Schema> schema = find_schema(evaluation.call().node().target);
  const Promotion promotion = schema ? schema->promotion : Promotion::kNone;
  invariant(promotion != Promotion::kNone, "a row asks for a promotion that torch's table does not have");
  if (promotion == Promotion::kIntToFloat && !is_floating(dtype) && !is_complex(dtype)) return {DType::kF32};
  if (promotion == Promotion::kBoolToLong && dtype == DType::kBool) return {DType::kI64};
  return {dtype};
}

std::optional<double> known(const Argument& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? 1 : 0;
  if (const auto* number = std::get_if<int64_t>(&value.value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value.value)) return *number;
  return std::nullopt;
}

Argument smallest(Evaluation& evaluation, Values values) {
  const Argument &a = value_at(evaluation, values, 0), &b = value_at(evaluation, values, 1);
  if (known(a) && known(b)) return *known(a) <= *known(b) ? a : b;
  return evaluation.argument_of(
      smaller(evaluation.size_of(a), evaluation.size_of(b), evaluation.call().graph().symbols));
}
Argument largest(Evaluation& evaluation, Values values) {
  const Argument &a = value_at(evaluation, values, 0), &b = value_at(evaluation, values, 1);
  if (known(a) && known(b)) return *known(a) >= *known(b) ? a : b;
  return evaluation.argument_of(maximum(evaluation.size_of(a), evaluation.size_of(b)));
}

// ---- operators ----

bool is_same(const Argument& a, const Argument& b) {
  if (known(a) && known(b)) return *known(a) == *known(b);
  if (const auto* text = std::get_if<std::string>(&a.value)) {
    const auto* other = std::get_if<std::string>(&b.value);
    return other != nullptr && *text == *other;
  }
  if (const auto* dtype = std::get_if<DType>(&a.value)) {
    const auto* other = std::get_if<DType>(&b.value);
    return other != nullptr && *dtype == *other;
  }
  return std::holds_alternative<None>(a.value) && std::holds_alternative<None>(b.value);
}
// None, or the same tensor.
bool is_identical(Evaluation& evaluation, const Argument& a, const Argument& b) {
  if (!evaluation.is_tensor(a) || !evaluation.is_tensor(b))
    return std::holds_alternative<None>(a.value) && std::holds_alternative<None>(b.value);
  Scope& scope = evaluation.scope();
  return scope.tensor(std::get<ValueId>(a.value)) == scope.tensor(std::get<ValueId>(b.value));
}
bool has_size(Evaluation& evaluation, const Argument& value) {
  const auto* id = std::get_if<ValueId>(&value.value);
  return id != nullptr && evaluation.scope().integer(*id).has_value();
}

// A comparison that the ranges of sizes decide.
bool decided(Evaluation& evaluation, const Predicate& condition) {
  const SymbolTable& symbols = evaluation.call().graph().symbols;
  if (is_proven(condition, symbols)) return true;
  if (!is_proven(negation(condition), symbols)) evaluation.call().refuse("a choice that depends on sizes");
  return false;
}
bool compared_sizes(Evaluation& evaluation, std::string_view name, const Dim& a, const Dim& b) {
  using Kind = Predicate::Kind;
  if (name == "==") return decided(evaluation, compare(Kind::kEqual, a, b));
  if (name == "!=") return !decided(evaluation, compare(Kind::kEqual, a, b));
  if (name == "<") return decided(evaluation, is_less(a, b));
  if (name == ">") return decided(evaluation, is_less(b, a));
  return name == "<=" ? decided(evaluation, at_most(a, b)) : decided(evaluation, at_most(b, a));
}
bool compared_values(Evaluation& evaluation, std::string_view name, const Argument& a, const Argument& b) {
  if (has_size(evaluation, a) || has_size(evaluation, b))
    return compared_sizes(evaluation, name, evaluation.size_of(a), evaluation.size_of(b));
  if (name == "==") return is_same(a, b);
  if (name == "!=") return !is_same(a, b);
  const auto *m = std::get_if<int64_t>(&a.value), *n = std::get_if<int64_t>(&b.value);
  if (m != nullptr && n != nullptr)  // exactly
    return name == "<" ? *m < *n : name == "<=" ? *m <= *n : name == ">" ? *m > *n : *m >= *n;
  const auto x = known(a), y = known(b);
  if (!x || !y) evaluation.call().refuse("a comparison of an argument that is not a number");
  if (name == "<") return *x < *y;
  if (name == "<=") return *x <= *y;
  return name == ">" ? *x > *y : *x >= *y;
}

Argument arithmetic_of(Evaluation& evaluation, std::string_view name, Values values) {
  static constexpr std::pair<std::string_view, const char*> kTargets[] = {
      {"+", "_operator.add"},  {"-", "_operator.sub"},       {"*", "_operator.mul"},
      {"**", "_operator.pow"}, {"//", "_operator.floordiv"}, {"/", "_operator.truediv"},
      {"%", "_operator.mod"}};
  for (const auto& [text, target] : kTargets) {
    if (text != name) continue;
    const Argument zero{int64_t{0}};
    const bool divides = name == "//" || name == "%" || name == "/";
    evaluation.call().require(!divides || known(values[1]) != 0, "a division by zero");
    if (values.size() == 1) return evaluation.apply(target, {{"", zero}, {"", values[0]}});
    return evaluation.apply(target, {{"", values[0]}, {"", values[1]}});
  }
  evaluation.call().refuse("an operator of the table that numbers do not have");
}
Argument joined_lists(Evaluation& evaluation, std::string_view name, Values values) {
  const auto* a = std::get_if<ArgumentList>(&values[0].value);
  if (name == "*") {
    ArgumentList repeated;
    for (int64_t i = evaluation.integer(values[1]); i > 0; --i) {
      repeated.insert(repeated.end(), a->begin(), a->end());
      evaluation.call().require(repeated.size() <= kLongestRange, "a very long list");
    }
    return {std::move(repeated)};
  }
  const auto* b = std::get_if<ArgumentList>(&values[1].value);
  evaluation.call().require(name == "+" && b != nullptr, "an argument that is not a list");
  ArgumentList all = *a;
  all.insert(all.end(), b->begin(), b->end());
  return {std::move(all)};
}

// Of known values; sizes are the same only if they are so for all inputs.
bool is_equal(Evaluation& evaluation, const Argument& a, const Argument& b) {
  if (!has_size(evaluation, a) && !has_size(evaluation, b)) return is_same(a, b);
  return evaluation.size_of(a) == evaluation.size_of(b);
}
ArgumentList::const_iterator found_in(Evaluation& evaluation, const Argument& value,
                                      const ArgumentList& list) {
  return std::ranges::find_if(list, [&](const Argument& item) { return is_equal(evaluation, item, value); });
}
Argument index_of(Evaluation& evaluation, Values values) {
  const ArgumentList& list = evaluation.list_in(value_at(evaluation, values, 1));
  const auto found = found_in(evaluation, values[0], list);
  evaluation.call().require(found != list.end(), "no dim of the size that it needs");
  return {found - list.begin()};
}
bool is_member(Evaluation& evaluation, Values values) {
  const auto *part = std::get_if<std::string>(&values[0].value),
             *text = std::get_if<std::string>(&values[1].value);
  if (part != nullptr && text != nullptr) return text->find(*part) != std::string::npos;
  const ArgumentList& list = evaluation.list_in(values[1]);
  return found_in(evaluation, values[0], list) != list.end();
}

constexpr NamedFunction kFunctions[] = {
    {"axis", axis},
    {"broadcast", broadcast},
    {"default_dtype", default_dtype},
    {"dtype_of", dtype_of},
    {"index_of", index_of},
    {"is_floating_point", is_floating_tensor},
    {"largest", largest_number},
    {"len", length},
    {"max", largest},
    {"may_be_negative", may_be_negative},
    {"min", smallest},
    {"numel", element_count},
    {"product", product_of_sizes},
    {"promoted_type", promoted_type},
    {"range", range},
    {"rank", rank},
    {"refuse", refuse},
    {"result_type", result_type},
    {"shape", shape},
    {"size", size},
    {"total", total},
};

}  // namespace

CompositeFunction find_composite_function(std::string_view name) {
  for (const std::span<const NamedFunction> functions :
       {std::span<const NamedFunction>(kFunctions), core_functions()})
    for (const auto& [text, function] : functions)
      if (text == name) return function;
  return nullptr;
}

const Argument& value_at(Evaluation& evaluation, std::span<const Argument> values, size_t index) {
  evaluation.call().require(index < values.size(), "a function of the table with too few arguments");
  return values[index];
}

size_t result_index(Evaluation& evaluation, std::span<const Argument> values) {
  return values.empty() ? 0 : static_cast<size_t>(evaluation.integer(values[0]));
}

int64_t checked_axis(Evaluation& evaluation, int64_t axis, int64_t count) {
  evaluation.call().require(axis >= -count && axis < count, "a tensor with too few dims");
  return axis < 0 ? axis + count : axis;
}

Argument size_list(Evaluation& evaluation, const Shape& shape) {
  ArgumentList sizes;
  for (const Dim& size : shape) sizes.push_back(evaluation.argument_of(size));
  return {std::move(sizes)};
}

Argument plain_operation(Evaluation& evaluation, std::string_view name, std::span<const Argument> values) {
  if (name == "not") return {!evaluation.is_true(values[0])};
  if (name == "is") return {is_identical(evaluation, values[0], values[1])};
  if (name == "in") return {is_member(evaluation, values)};
  if (std::holds_alternative<ArgumentList>(values[0].value) && values.size() == 2)
    return joined_lists(evaluation, name, values);
  const auto* text = std::get_if<std::string>(&values[0].value);
  const auto* other = values.size() == 2 ? std::get_if<std::string>(&values[1].value) : nullptr;
  if (name == "+" && text != nullptr && other != nullptr) return {*text + *other};
  const bool compares = name == "==" || name == "!=" || name.front() == '<' || name.front() == '>';
  if (compares) return {compared_values(evaluation, name, values[0], values[1])};
  return arithmetic_of(evaluation, name, values);
}

}  // namespace ingot::core::aten
