// SPDX-License-Identifier: Apache-2.0
// Evaluates a composite during the import of one of its calls: each call in it becomes nodes at once.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "importers/aten/composites/composite.h"
#include "importers/aten/converters/call.h"
#include "importers/aten/converters/inner_scope.h"

namespace ingot::core::aten {

class Evaluation {
 public:
  explicit Evaluation(Call& call) : call_(call), scope_(call.scope()) {}

  void run(const Composite& composite);

  Call& call() { return call_; }
  InnerScope& scope() { return scope_; }

  Argument value_of(const Expression& expression);
  bool is_true(const Argument& value) const;
  bool is_tensor(const Argument& value) const;
  const ArgumentList& list_in(const Argument& value) const;  // the value lives longer
  const TensorMeta& meta(const Argument& tensor) const;      // as the front end described it
  // What it was imported as: sizes that follow from data have names of their own there.
  const Shape& shape(const Argument& tensor);
  DType dtype(const Argument& tensor);
  Dim size_of(const Argument& value);  // of an integer
  int64_t integer(const Argument& value);
  std::optional<double> known_number(const Argument& value);  // nullopt if it depends on sizes or data
  double number(const Argument& value);
  bool is_symbol(const Argument& value) const;       // a number that depends on sizes or data
  bool is_real_symbol(const Argument& value) const;  // a float that is not known from the program
  bool is_bool_symbol(const Argument& value) const;  // likewise
  core::Value* tensor(const Argument& value);        // rejects complex ones
  // A tensor, or a number without dims, in this dtype.
  core::Value* operand(const Argument& value, DType dtype);
  Argument argument_of(const Dim& size);
  // Results of a call that becomes nodes. `outputs`: those of the composite's call, to make them its results.
  Argument apply(const std::string& target, std::vector<NamedArgument> arguments,
                 std::span<const std::optional<ValueId>> outputs = {});
  // Results of a node of one of our operators: tensors are its operands, by name given are its attributes.
  Argument node_of(std::string_view op, std::span<const NamedArgument> given);

 private:
  using Names = std::map<std::string, Argument, std::less<>>;

  core::Value* truth_of(const Argument& bool_symbol);
  void give_results(const std::vector<Expression>& results);
  void give(size_t index, const Argument& value);
  bool give_call(const Expression& result, std::optional<size_t> index = std::nullopt);
  Names arguments_of(const Composite& composite) const;
  Argument called(const Expression& expression);
  Argument local_value(const Composite& composite, const Expression& expression);
  Argument operated(const Expression& expression);
  Argument of_tensors(const Expression& expression, std::vector<Argument> values);
  Argument each(const Expression& expression);
  Argument item(const Expression& expression);
  Argument slice(const Expression& expression);
  std::vector<NamedArgument> arguments_of(const Expression& call);
  std::vector<Argument> values_of(std::span<const Expression> expressions);

  Call& call_;
  InnerScope scope_;
  Names names_;
  size_t depth_ = 0;  // of local rows
};

// A function that is neither an operator nor a row of the table: rank, size, len ...; null if it has another
// name.
using CompositeFunction = Argument (*)(Evaluation& evaluation, std::span<const Argument> values);
CompositeFunction find_composite_function(std::string_view name);

struct NamedFunction {
  std::string_view name;
  CompositeFunction function;
};
std::span<const NamedFunction> core_functions();

// For functions: rejects calls with too few values.
const Argument& value_at(Evaluation& evaluation, std::span<const Argument> values, size_t index);
// Which result is meant: the first one, or that of the number given.
size_t result_index(Evaluation& evaluation, std::span<const Argument> values);
int64_t checked_axis(Evaluation& evaluation, int64_t axis, int64_t count);  // not negative
Argument size_list(Evaluation& evaluation, const Shape& shape);

// An operator of numbers, sizes, texts and lists.
Argument plain_operation(Evaluation& evaluation, std::string_view name, std::span<const Argument> values);

}  // namespace ingot::core::aten
