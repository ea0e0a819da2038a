// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/composites/evaluation.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/complex.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/schema/schemas.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

using Locals = std::unordered_map<std::string_view, const Composite*>;

Locals all_locals() {
  Locals locals;
  for (const Composite& composite : all_composites())
    if (composite.kind == Composite::Kind::kLocal) locals.emplace(composite.target, &composite);
  return locals;
}
const Composite* find_local(std::string_view name) {
  static const Locals kLocals = all_locals();
  const auto found = kLocals.find(name);
  return found == kLocals.end() ? nullptr : found->second;
}

constexpr std::string_view kOwn = "op.";  // before the names of our operators

// "sum" is "aten.sum.default", "where" is "aten.where.self": the first overload that has a converter.
std::string target_of(std::string_view name) {
  if (name.starts_with("prims.")) return std::string(name);
  std::string target = "aten." + std::string(name);
  if (name.find('.') != std::string_view::npos) return target;
  constexpr std::array kOverloads = {".self", ".default", ".Tensor", ".int"};
  for (const char* overload : kOverloads)
    if (find_converter(target + overload) != nullptr) return target + overload;
  return target + ".default";
}

struct TensorOperator {
  std::string_view text, target;
};
constexpr TensorOperator kOfTensors[] = {
    {"+", "aten.add.Tensor"},
    {"-", "aten.sub.Tensor"},
    {"*", "aten.mul.Tensor"},
    {"/", "aten.div.Tensor"},
    {"@", "aten.matmul.default"},
    {"**", "aten.pow.Tensor_Scalar"},
    {"<", "aten.lt.Tensor"},
    {"<=", "aten.le.Tensor"},
    {">", "aten.gt.Tensor"},
    {">=", "aten.ge.Tensor"},
    {"==", "aten.eq.Tensor"},
    {"!=", "aten.ne.Tensor"},
    {"&", "aten.bitwise_and.Tensor"},
    {"|", "aten.bitwise_or.Tensor"},
    {"^", "aten.bitwise_xor.Tensor"},
    {"%", "aten.remainder.Tensor"},
    {"//", "aten.floor_divide.default"},
};

size_t result_count(const Node& node, size_t expected) {
  const std::optional<Schema> schema = find_schema(node.target);
  return std::max<size_t>(expected, schema ? schema->returns.size() : 1);
}

}  // namespace

void Evaluation::run(const Composite& composite) {
  names_ = arguments_of(composite);
  for (const Composite::Step& step : composite.steps) names_[step.name] = value_of(step.value);
  give_results(composite.results);
}

Evaluation::Names Evaluation::arguments_of(const Composite& composite) const {
  Names names;
  for (const std::string& parameter : composite.parameters) {
    const auto& given = call_.node().arguments;
    const auto found = std::ranges::find(given, parameter, &NamedArgument::name);
    names[parameter] = found == given.end() ? Argument{None{}} : found->argument;
  }
  return names;
}

void Evaluation::give_results(const std::vector<Expression>& results) {
  if (results.size() == 1) {
    if (give_call(results[0])) return;
    const Argument value = value_of(results[0]);
    const auto* list = std::get_if<ArgumentList>(&value.value);
    if (list == nullptr) return give(0, value);
    for (size_t i = 0; i < list->size(); ++i) give(i, (*list)[i]);
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (i >= call_.result_count() || !call_.node().outputs[i]) continue;
    const Value& recorded = call_.scope().value(*call_.node().outputs[i]);
    if (is_complex(recorded.tensor.dtype) && give_call(results[i], i)) continue;
    give(i, value_of(results[i]));
  }
}

// A result that is another operator's is that call's: it takes the types which the front end recorded.
// `index`: of several; nullopt: all results are the call's.
bool Evaluation::give_call(const Expression& result, std::optional<size_t> index) {
  if (result.kind == Expression::Kind::kChoice)
    return give_call(result.parts[is_true(value_of(result.parts[0])) ? 1 : 2], index);
  if (result.kind != Expression::Kind::kCall || result.text.starts_with(kOwn) ||
      find_composite_function(result.text) != nullptr || find_local(result.text) != nullptr)
    return false;
  const std::span<const std::optional<ValueId>> outputs = call_.node().outputs;
  apply(target_of(result.text), arguments_of(result), index ? outputs.subspan(*index, 1) : outputs);
  return true;
}

void Evaluation::give(size_t index, const Argument& value) {
  if (is_tensor(value)) return call_.give(index, scope_.tensor(std::get<ValueId>(value.value)));
  if (std::holds_alternative<None>(value.value)) return;
  call_.give(size_of(value));
}

Argument Evaluation::value_of(const Expression& expression) {
  using Kind = Expression::Kind;
  switch (expression.kind) {
    case Kind::kLiteral:
      return expression.literal;
    case Kind::kName: {
      const auto found = names_.find(expression.text);
      if (found != names_.end()) return found->second;
      if (const auto dtype = parse_dtype(expression.text)) return {*dtype};
      throw InternalError("composites.def has no value named " + expression.text);
    }
    case Kind::kCall:
      return called(expression);
    case Kind::kOperator:
      return operated(expression);
    case Kind::kChoice:
      return value_of(expression.parts[is_true(value_of(expression.parts[0])) ? 1 : 2]);
    case Kind::kList:
      return {ArgumentList(values_of(expression.parts))};
    case Kind::kEach:
      return each(expression);
    case Kind::kItem:
      return item(expression);
    case Kind::kSlice:
      return slice(expression);
  }
  return {};
}

std::vector<Argument> Evaluation::values_of(std::span<const Expression> expressions) {
  std::vector<Argument> values;
  for (const Expression& expression : expressions) values.push_back(value_of(expression));
  return values;
}

std::vector<NamedArgument> Evaluation::arguments_of(const Expression& call) {
  std::vector<NamedArgument> arguments;
  for (size_t i = 0; i < call.parts.size(); ++i)
    arguments.push_back({call.keywords[i], value_of(call.parts[i])});
  return arguments;
}

Argument Evaluation::called(const Expression& expression) {
  if (expression.text.starts_with(kOwn))
    return node_of(std::string_view(expression.text).substr(kOwn.size()), arguments_of(expression));
  if (const CompositeFunction function = find_composite_function(expression.text))
    return function(*this, values_of(expression.parts));
  if (const Composite* local = find_local(expression.text)) return local_value(*local, expression);
  return apply(target_of(expression.text), arguments_of(expression));
}

Argument Evaluation::local_value(const Composite& composite, const Expression& expression) {
  constexpr size_t kDeepest = 128;  // of a row that calls itself
  call_.require(depth_ < kDeepest, "a formula of very many steps");
  Names inner;
  for (size_t i = 0; i < composite.parameters.size(); ++i)
    inner[composite.parameters[i]] =
        i < expression.parts.size() ? value_of(expression.parts[i]) : Argument{None{}};
  Names outer = std::exchange(names_, std::move(inner));
  ++depth_;
  for (const Composite::Step& step : composite.steps) names_[step.name] = value_of(step.value);
  Argument result = composite.results.size() == 1 ? value_of(composite.results[0])
                                                  : Argument{ArgumentList(values_of(composite.results))};
  names_ = std::move(outer);
  --depth_;
  return result;
}

Argument Evaluation::operated(const Expression& expression) {
  // The second operand of `and` and `or` is only evaluated if it decides.
  if (expression.text == "and" || expression.text == "or") {
    const bool first = is_true(value_of(expression.parts[0]));
    if (first == (expression.text == "or")) return {first};
    return {is_true(value_of(expression.parts[1]))};
  }
  std::vector<Argument> values = values_of(expression.parts);
  const bool has_tensor =
      std::ranges::any_of(values, [&](const Argument& value) { return is_tensor(value); });
  if (has_tensor && expression.text != "is" && expression.text != "not")
    return of_tensors(expression, std::move(values));
  return plain_operation(*this, expression.text, values);
}

Argument Evaluation::of_tensors(const Expression& expression, std::vector<Argument> values) {
  if (values.size() == 1) return apply("aten.neg.default", {{"", values[0]}});
  const auto* found = std::ranges::find(kOfTensors, expression.text, &TensorOperator::text);
  invariant(found != std::end(kOfTensors), "composites.def has an operator that tensors do not have");
  return apply(std::string(found->target), {{"", values[0]}, {"", values[1]}});
}

Argument Evaluation::each(const Expression& expression) {
  const Argument source = value_of(expression.parts[1]);
  ArgumentList results;
  for (const Argument& value : list_in(source)) {
    names_[expression.text] = value;
    const bool is_wanted = expression.parts.size() < 3 || is_true(value_of(expression.parts[2]));
    if (is_wanted) results.push_back(value_of(expression.parts[0]));
  }
  return {std::move(results)};
}

Argument Evaluation::item(const Expression& expression) {
  const Argument source = value_of(expression.parts[0]);
  const ArgumentList& list = list_in(source);
  const auto count = static_cast<int64_t>(list.size());
  const int64_t index = integer(value_of(expression.parts[1]));
  call_.require(index >= -count && index < count, "an argument or a shape with too few entries");
  return list[static_cast<size_t>(index < 0 ? index + count : index)];
}

Argument Evaluation::slice(const Expression& expression) {
  const Argument source = value_of(expression.parts[0]);
  const ArgumentList& list = list_in(source);
  const auto count = static_cast<int64_t>(list.size());
  const auto bound = [&](const Expression& given, int64_t none) {
    const Argument value = value_of(given);
    if (std::holds_alternative<None>(value.value)) return none;
    const int64_t at = integer(value);
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const int64_t first = bound(expression.parts[1], 0), last = bound(expression.parts[2], count);
  return {ArgumentList(list.begin() + first, list.begin() + std::max(first, last))};
}

Argument Evaluation::apply(const std::string& target, std::vector<NamedArgument> arguments,
                           std::span<const std::optional<ValueId>> outputs) {
  Node node{.target = target,
            .name = call_.node().name,
            .arguments = std::move(arguments),
            .outputs = {},
            .source = call_.node().source};
  complete_arguments(node);
  node.outputs.assign(outputs.begin(), outputs.end());
  if (outputs.empty()) {
    for (size_t i = result_count(node, 1); i > 0; --i) node.outputs.emplace_back(scope_.expect());
  }
  const bool is_complex = is_complex_call(scope_, node);
  const Converter* converter = is_complex ? find_complex_converter(target) : find_converter(target);
  if (converter == nullptr) call_.refuse("it needs " + target + ", which is not supported here");
  Call inner(scope_, node);
  converter->convert(inner);
  if (!outputs.empty()) return {};
  ArgumentList results;
  for (const auto& output : node.outputs) results.push_back(scope_.result_argument(*output));
  return results.size() == 1 ? results[0] : Argument{std::move(results)};
}

const ArgumentList& Evaluation::list_in(const Argument& value) const {
  const auto* list = std::get_if<ArgumentList>(&value.value);
  if (list == nullptr) call_.refuse("an argument that is not a list");
  return *list;
}

bool Evaluation::is_tensor(const Argument& value) const {
  const auto* id = std::get_if<ValueId>(&value.value);
  return id != nullptr && scope_.value(*id).kind == ValueKind::kTensor;
}

const TensorMeta& Evaluation::meta(const Argument& tensor) const {
  if (!is_tensor(tensor)) call_.refuse("an argument that is not a tensor");
  return scope_.value(std::get<ValueId>(tensor.value)).tensor;
}

const Shape& Evaluation::shape(const Argument& value) {
  const TensorMeta& recorded = meta(value);
  return is_complex(recorded.dtype) ? recorded.shape : tensor(value)->type.shape;
}

DType Evaluation::dtype(const Argument& value) {
  if (is_bool_symbol(value)) return DType::kBool;
  if (is_symbol(value)) return is_real_symbol(value) ? DType::kF64 : DType::kI64;
  const TensorMeta& recorded = meta(value);
  return is_complex(recorded.dtype) ? recorded.dtype : tensor(value)->type.dtype;
}

bool Evaluation::is_true(const Argument& value) const {
  if (std::holds_alternative<None>(value.value)) return false;
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&value.value)) return *number != 0;
  if (const auto* number = std::get_if<double>(&value.value)) return *number != 0;
  if (const auto* text = std::get_if<std::string>(&value.value)) return !text->empty();
  if (const auto* list = std::get_if<ArgumentList>(&value.value)) return !list->empty();
  call_.refuse("a choice that depends on data or sizes");
}

Dim Evaluation::size_of(const Argument& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return static_cast<int64_t>(*flag);
  if (const auto* number = std::get_if<int64_t>(&value.value)) return *number;
  const auto* id = std::get_if<ValueId>(&value.value);
  const std::optional<Dim> size = id == nullptr ? std::nullopt : scope_.integer(*id);
  if (!size) call_.refuse("a size that is not known from the sizes of the inputs");
  return *size;
}

int64_t Evaluation::integer(const Argument& value) {
  const auto known = size_of(value).constant();
  if (!known) call_.refuse("an argument that depends on the sizes of the inputs");
  return *known;
}

bool Evaluation::is_symbol(const Argument& value) const {
  return std::holds_alternative<ValueId>(value.value) && !is_tensor(value);
}
bool Evaluation::is_real_symbol(const Argument& value) const {
  const auto* id = std::get_if<ValueId>(&value.value);
  return id != nullptr && scope_.value(*id).kind == ValueKind::kSymFloat;
}

bool Evaluation::is_bool_symbol(const Argument& value) const {
  const auto* id = std::get_if<ValueId>(&value.value);
  return id != nullptr && scope_.value(*id).kind == ValueKind::kSymBool;
}
core::Value* Evaluation::truth_of(const Argument& value) {
  const auto answer = answer_of(call_.graph(), std::get<ValueId>(value.value));
  if (!answer) call_.refuse("a bool that is not known from the sizes of the inputs");
  return compared(call_.graph(), *answer);
}

std::optional<double> Evaluation::known_number(const Argument& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&value.value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value.value)) return *real;
  const auto* id = std::get_if<ValueId>(&value.value);
  if (id == nullptr || is_tensor(value)) return std::nullopt;
  if (const auto real = scope_.number(*id)) return real;
  const auto size = scope_.integer(*id);
  const auto known = size ? size->constant() : std::nullopt;
  return known ? std::optional(static_cast<double>(*known)) : std::nullopt;
}

double Evaluation::number(const Argument& value) {
  const auto known = known_number(value);
  if (!known) call_.refuse("a number that is not known now");
  return *known;
}

Argument Evaluation::argument_of(const Dim& size) {
  if (const auto known = size.constant()) return {*known};
  const ValueId id = scope_.expect();
  scope_.give(id, size);
  return {id};
}

}  // namespace ingot::core::aten
