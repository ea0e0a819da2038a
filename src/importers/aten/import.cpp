// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/call.h"
#include "importers/aten/converters/complex.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/data_sizes.h"
#include "importers/aten/converters/parts.h"
#include "importers/aten/converters/random_source.h"
#include "importers/aten/importer.h"
#include "importers/aten/program/aten_text.h"
#include "importers/aten/program/bound_symbols.h"
#include "importers/aten/program/guards.h"
#include "importers/aten/program/known_sizes.h"
#include "importers/aten/program/mutated_input.h"
#include "importers/aten/program/node_error.h"
#include "importers/aten/program/passed_numbers.h"
#include "importers/aten/recorded.h"
#include "importers/aten/shared_memory.h"
#include "importers/aten/stored_constant.h"
#include "ir/bound_symbol.h"
#include "ops/assertion.h"
#include "ops/data_sizes.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/size_condition.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

PlainValue plain_value(const Argument& argument) {
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&argument.value)) return *value;
  if (const auto* value = std::get_if<double>(&argument.value)) return *value;
  if (const auto* value = std::get_if<std::string>(&argument.value)) return *value;
  if (std::holds_alternative<None>(argument.value)) return None{};
  throw UnsupportedError("INGOT-N521",
                         "an input or output of the program is neither a tensor nor a plain number or text");
}

Shape shape_of(const TensorView& view) { return Shape(view.shape.begin(), view.shape.end()); }

// New values of mutated tensors are assigned as by aten.copy_: a functional program of torch may return them
// in another dtype, and without broadcast dims.
core::Value* as_written(core::Graph& graph, core::Value* value, const TensorType& type) {
  const Shape &from = value->type.shape, &to = type.shape;
  const auto fits = [](const Dim& a, const Dim& b) { return a == b || a == Dim(1); };
  if (from.size() > to.size() || !std::equal(from.rbegin(), from.rend(), to.rbegin(), fits)) return value;
  value = converted(graph, value, type.dtype);
  return from == to ? value : graph.call(ops::expand, {value}, ops::NewShape{to});
}

constexpr const char* kRandomState = "random numbers";
Tensor seed_and_run(int64_t seed, int64_t run) {
  Tensor tensor = make_tensor(DType::kI64, {2});
  const int64_t values[] = {seed, run};
  for (const int64_t i : {0, 1}) write_integer(tensor.view(), {&i, 1}, values[i]);
  return tensor;
}

class ProgramImport {
 public:
  ProgramImport(const Program& program, const ImportOptions& options)
      : options_(options),
        with_known_sizes_(with_known_sizes(program.graph)),
        source_(with_known_sizes_ ? *with_known_sizes_ : program.graph),
        importer_(source_, result_.graph) {
    result_.graph.symbols = source_.symbols;
    result_.checks = guard_checks(program);
    if (!options.random_seed) return;
    random_.make_state = [this] { return add_random_state(); };
    importer_.draw_from(&random_);
  }

  Imported run() {
    refuse_partly_shared_memory(source_, importer_.aliases());
    for (const Input& input : source_.inputs) {
      if (!importer_.aliases().is_view(input.value)) add_input(input);
    }
    for (const Input& input : source_.inputs) {  // other names for the same memory
      const auto shared = importer_.aliases().base.find(input.value);
      if (shared != importer_.aliases().base.end())
        importer_.bind(input.value, importer_.tensor(shared->second));
    }
    bind_passed_numbers();
    importer_.run();
    compute_number_outputs();
    for (SizeCheck& check : ops::take_checks(result_.graph)) result_.checks.push_back(std::move(check));
    for (const SizeCheck& check : importer_.nested_checks()) result_.checks.push_back(check);
    for (const Output& output : source_.outputs) add_output(output);
    for (const auto& [value, state] : written_) {
      const auto returned = mutations_.find(value);
      core::Value* last = returned == mutations_.end() ? importer_.tensor(value) : returned->second;
      last = as_written(result_.graph, last, state->type);
      if (last->type.dtype != state->type.dtype || last->type.shape != state->type.shape) {
        throw UserError(
            "INGOT-U523",
            fmt::format("the program updates \"{}\", which is {}, by a value of type {}",
                        source_.values[value].name, state->dtype_and_shape(), last->dtype_and_shape()));
      }
      result_.graph.updates.push_back({state, last});
    }
    if (random_.state != nullptr) {
      core::Value* next = result_.graph.add_constant(seed_and_run(0, 1));
      result_.graph.updates.push_back({random_.state, result_.graph.call(ops::add, {random_.state, next})});
    }
    BoundSymbols bound = bound_symbols(source_);
    bound.merge(symbols_bound_by_nodes(result_.graph));
    bound.merge(rank_symbols(result_.graph.symbols));
    refuse_unbound_symbols(result_.graph, bound);
    std::erase_if(result_.graph.symbols, [&](const auto& symbol) { return !bound.contains(symbol.first); });
    return std::move(result_);
  }

 private:
  void add_input(const Input& input) {
    const Value& value = source_.values[input.value];
    const bool written = importer_.aliases().written.contains(input.value);
    if (input.kind != InputKind::kUser) {
      importer_.bind(input.value, written ? add_state(input, std::nullopt) : add_stored(input));
    } else if (value.kind == ValueKind::kTensor && !input.literal) {
      const auto position = static_cast<uint32_t>(result_.input_slots.size());
      importer_.bind(input.value,
                     written ? add_state(input, position) : add_argument(input.name, value.tensor));
      result_.input_slots.push_back(TensorSlot{});
    } else {
      add_number(input, value);
    }
  }

  // Literals were specialized. Of others the value is passed, or known from the sizes of the tensors.
  void add_number(const Input& input, const Value& value) {
    if (input.literal) {
      result_.input_slots.push_back(plain_value(*input.literal));
      if (const auto* number = std::get_if<int64_t>(&input.literal->value))
        importer_.bind(input.value, Dim(*number));
      if (const auto* number = std::get_if<double>(&input.literal->value))
        importer_.bind(input.value, *number);
      return;
    }
    if (value.kind != ValueKind::kSymInt || !value.integer) {
      throw UnsupportedError(
          "INGOT-N521", fmt::format("input \"{}\" is a number that changes from call to call", input.name));
    }
    importer_.bind(input.value, *value.integer);
    if (!source_.passes_numbers) {
      result_.input_slots.push_back(SizeSlot{});
      return;
    }
    result_.input_slots.push_back(TensorSlot{.is_number = true});
    core::Value* number = result_.graph.add_input(input.name, TensorType{DType::kI64, {}, {}});
    passed_.push_back({&input, number, *value.integer});
  }

  // The first integer of each symbol that no tensor has as a size is the symbol's value; others have to be
  // equal.
  void bind_passed_numbers() {
    auto unbound = passed_symbols(source_);
    refuse_sizes_by_numbers(unbound);
    for (const auto& [input, number, integer] : passed_) {
      if (integer.is_symbol() && unbound.erase(integer.symbol_name()) > 0) {
        const std::string& symbol = integer.symbol_name();
        result_.graph.symbols[symbol].upper_bound = largest_number(importer_, symbol);
        result_.graph.call(ops::bind_size, {number}, ops::DataSize{integer});
      } else {
        core::Value* expected = size_scalar(result_.graph, integer, DType::kI64);
        core::Value* is_equal = result_.graph.call(ops::equal, {number, expected});
        const std::string text = fmt::format("{} must be {}", input->name, integer.to_string());
        result_.graph.add(ops::assert_true, {is_equal}, ops::Assertion{text});
      }
    }
  }

  // What a call passes as a tensor has its sizes before the call's integers are read.
  void refuse_sizes_by_numbers(const BoundSymbols& numbers) const {
    for (const core::Value* input : result_.graph.inputs()) {
      for (const Dim& size : input->type.shape) {
        for (const std::string& symbol : size.symbols()) {
          if (numbers.contains(symbol))
            throw UnsupportedError(
                "INGOT-N522",
                fmt::format("input \"{}\" has the size {}, where {} is an integer that calls pass",
                            input->name, size.to_string(), symbol),
                "ingot.compile runs such a program in torch");
        }
      }
    }
  }

  core::Value* add_argument(const std::string& name, const TensorMeta& meta) {
    if (is_complex(meta.dtype)) result_.complex_inputs.insert(result_.graph.inputs().size());
    return result_.graph.add_input(name, imported_type(meta));
  }

  core::Value* add_state(const Input& input, std::optional<uint32_t> mutated_input) {
    const TensorMeta& meta = source_.values[input.value].tensor;
    const TensorType type = imported_type(meta);
    const auto number = static_cast<int64_t>(result_.states.size());
    core::Value* state =
        result_.graph.call(ops::state, {}, ops::ModelSource{input.name, type.dtype, type.shape, {}, number});
    result_.states.push_back({.name = input.name,
                              .initial = input.data ? std::optional(as_pairs(*input.data)) : std::nullopt,
                              .mutated_input = mutated_input,
                              .is_complex = is_complex(meta.dtype)});
    written_.emplace_back(input.value, state);
    return state;
  }

  core::Value* add_random_state() {
    const Tensor initial = seed_and_run(*options_.random_seed, 0);
    const auto number = static_cast<int64_t>(result_.states.size());
    result_.states.push_back({.name = kRandomState, .initial = OwnedView{initial.view(), initial.data}});
    return result_.graph.call(ops::state, {}, ops::ModelSource{kRandomState, DType::kI64, {2}, {}, number});
  }

  // Floating-point parameters and buffers, and quantized matrices, are weights; everything else is a
  // constant.
  static bool may_be_weight(const TensorView& data) {
    constexpr size_t kMatrix = 2;
    return is_floating(data.dtype) || (data.dtype == DType::kI8 && data.shape.size() >= kMatrix);
  }
  core::Value* add_stored(const Input& input) {
    if (!input.data)
      throw UserError("INGOT-U522", fmt::format("the program has no values for \"{}\"", input.name));
    const TensorView& data = input.data->view;
    if (!may_be_weight(data) || input.kind == InputKind::kConstant || options_.weights_are_constants)
      return add_constant(result_.graph, *input.data);
    const auto number = static_cast<int64_t>(result_.weights.size());
    result_.weights.push_back({.name = input.name, .value = *input.data, .is_saved = input.is_saved});
    return result_.graph.call(ops::weight, {},
                              ops::ModelSource{input.name, data.dtype, shape_of(data), {}, number});
  }

  void add_output(const Output& output) {
    if (output.kind != OutputKind::kUser) {
      add_mutation(output);
      return;
    }
    const auto* id = std::get_if<ValueId>(&output.value.value);
    if (id == nullptr) {
      result_.output_slots.push_back(plain_value(output.value));
    } else if (source_.values[*id].kind == ValueKind::kTensor) {
      result_.output_slots.push_back(TensorSlot{});
      add_tensor_output(source_.values[*id], importer_.tensor(*id));
    } else {
      add_number_output(*id);
    }
  }

  void add_number_output(ValueId id) {
    if (const auto known = importer_.number(id)) {
      result_.output_slots.push_back(*known);
      return;
    }
    const auto computed = number_outputs_.find(id);
    if (computed == number_outputs_.end())
      throw UnsupportedError(
          "INGOT-N521",
          fmt::format("output \"{}\" is not a tensor{}", source_.values[id].name,
                      source_.passes_numbers ? ", nor a number that an engine can compute" : ""));
    result_.output_slots.push_back(TensorSlot{.is_number = true});
    result_.graph.outputs.push_back(computed->second);
  }

  // While the graph still has the answers of comparisons.
  void compute_number_outputs() {
    for (const Output& output : source_.outputs) {
      const auto* id = std::get_if<ValueId>(&output.value.value);
      if (!source_.passes_numbers || id == nullptr || source_.values[*id].kind == ValueKind::kTensor)
        continue;
      if (core::Value* value = number_tensor(*id)) number_outputs_.emplace(*id, value);
    }
  }

  // A number as a tensor without dims; null if it is unknown.
  core::Value* number_tensor(ValueId id) {
    if (core::Value* real = importer_.real_of_sizes(id)) return real;
    if (const auto answer = answer_of(result_.graph, id)) return compared(result_.graph, *answer);
    if (source_.values[id].kind != ValueKind::kSymInt) return nullptr;
    const auto integer = importer_.integer(id);
    return integer ? size_scalar(result_.graph, *integer, DType::kI64) : nullptr;
  }

  void add_tensor_output(const Value& recorded, core::Value* value) {
    if (is_complex(recorded.tensor.dtype)) {
      const Shape& shape = value->type.shape;
      const bool is_pair = value->type.dtype == component_of(recorded.tensor.dtype) && !shape.empty() &&
                           shape.back() == Dim(2);
      if (!is_pair)  // nothing compared what an in-place call makes with what a file records
        throw UnsupportedError("INGOT-N521",
                               fmt::format("output \"{}\" is recorded as {}, but is {}", recorded.name,
                                           to_string(recorded.tensor), value->dtype_and_shape()));
      result_.complex_outputs.insert(result_.graph.outputs.size());
    }
    result_.graph.outputs.push_back(value);
  }

  // A functional program returns the new values of mutated tensors.
  void add_mutation(const Output& output) {
    const Input* input = mutated_input(source_, output);
    const auto* id = std::get_if<ValueId>(&output.value.value);
    if (input == nullptr || id == nullptr) {
      throw UserError("INGOT-U523",
                      fmt::format("the program mutates \"{}\", which is not an input", output.target));
    }
    mutations_[input->value] = importer_.tensor(*id);
  }

  Imported result_;
  const ImportOptions options_;
  const std::optional<Graph> with_known_sizes_;
  const Graph& source_;
  Importer importer_;
  RandomSource random_;
  struct PassedNumber {
    const Input* input;
    core::Value* number;  // i64 without dims
    Dim integer;
  };
  std::vector<PassedNumber> passed_;
  std::map<ValueId, core::Value*> number_outputs_;
  std::vector<std::pair<ValueId, core::Value*>> written_;
  std::map<ValueId, core::Value*> mutations_;  // returned by a functional program for its mutated inputs
};

}  // namespace

Imported import_program(const Program& program, const ImportOptions& options) {
  return ProgramImport(program, options).run();
}

}  // namespace ingot::core::aten
