// SPDX-License-Identifier: Apache-2.0
#include "engine/validate_engine.h"

#include <algorithm>
#include <set>

#include "engine/validate_step.h"

namespace ingot::core {
namespace {

constexpr size_t kMaxDevices = 64;

bool has_constant_shape(const TensorType& type) {
  return std::ranges::all_of(type.shape, [](const Dim& dim) { return dim.is_constant(); });
}

void check_weight(const EngineData& engine, const WeightData& weight) {
  require(!weight.is_constant() || weight.data != nullptr || weight.bytes == 0, weight.name,
          "is a constant without value");
  check_layout(weight.type, weight.name);
  if (const FromSource* from = weight.source()) {
    require(from->index < engine.sources.size(), weight.name, "is not a weight of the model");
    const SourceWeight& source = engine.sources[from->index];
    const bool same = source.dtype == weight.type.dtype && weight.type.layout.is_row_major() &&
                      Tensor{nullptr, source.dtype, source.shape}.bytes() == weight.bytes;
    require(same, weight.name, "differs from the model's weight");
  }
  if (const FromInit* from = weight.init()) {
    require(from->output < engine.init.outputs.size(), weight.name, "is not a result of init");
    const TensorType& made = engine.init.outputs[from->output].type;
    const bool same = has_constant_shape(made) && made == weight.type &&
                      storage_bytes(made) == Dim(static_cast<int64_t>(weight.bytes));
    require(same, weight.name, "differs from the result of init");
  }
}

void check_uses(const EngineData& engine, const Program& program) {
  for (const Buffer& buffer : program.buffers) {
    const auto id = buffer.weight();
    if (!id) continue;
    const WeightData& weight = engine.weights[*id];
    require(weight.is_constant() == (buffer.as<ConstantStorage>() != nullptr), buffer.name,
            weight.is_constant() ? "is a constant" : "is not a constant");
    require(weight.type == buffer.type, buffer.name, "differs in type from its weight");
  }
  for (const Step& step : program.steps) {
    for (const uint32_t node : step.nodes)
      require(node < engine.nodes.size(), step.name, "computes a node that is not listed");
    const auto* kernel = step.as<KernelStep>();
    if (kernel == nullptr) continue;
    const Image& image = engine.images[kernel->launch.image];
    require(backend_of(image) == kernel->backend, step.name, "runs a kernel binary of another backend");
  }
  for (const Program& nested : program.nested) check_uses(engine, nested);
}

// Without dims, and of a dtype that a number of Python becomes or is read from.
bool may_be_number(const TensorType& type) {
  return type.shape.empty() &&
         (type.dtype == DType::kI64 || type.dtype == DType::kF64 || type.dtype == DType::kBool);
}

// The tensors among the slots are the ports, in this order.
void check_slots(const std::vector<CallSlot>& slots, std::span<const Port> ports,
                 std::string_view difference) {
  const auto tensors = static_cast<size_t>(std::ranges::count_if(slots, is_tensor));
  require(tensors == ports.size(), "the signature", difference);
  auto port = ports.begin();
  for (const CallSlot& slot : slots) {
    if (!is_tensor(slot)) continue;
    require(!is_number(slot) || may_be_number(port->type), port->name,
            "is not a number, as the signature says");
    ++port;
  }
}

// Which flat inputs are states and which are literals; the others are the program's inputs.
void check_signature(const EngineData& engine) {
  const Signature& signature = engine.signature;
  const size_t states = engine.main.states.size();
  require(signature.mutated_inputs.empty() || signature.mutated_inputs.size() == states, "the signature",
          "binds other states");
  std::set<uint32_t> bound;
  const size_t flat = signature.inputs.empty() ? engine.main.inputs.size() + states : signature.inputs.size();
  for (const std::optional<uint32_t>& input : signature.mutated_inputs) {
    if (!input) continue;
    require(bound.insert(*input).second, "the signature", "binds two states to the same input");
    require(*input < flat, "the signature", "binds a state to an input that does not exist");
    require(signature.inputs.empty() || is_tensor(signature.inputs[*input]), "the signature",
            "binds a state to a literal");
  }
  std::vector<CallSlot> arguments;
  for (uint32_t i = 0; i < signature.inputs.size(); ++i) {
    if (!bound.contains(i)) arguments.push_back(signature.inputs[i]);
  }
  if (!signature.inputs.empty())
    check_slots(arguments, engine.main.inputs, "differs from the program in its inputs");
  if (!signature.outputs.empty())
    check_slots(signature.outputs, engine.main.outputs, "differs from the program in its outputs");
}

// Evaluated before the first step, or when a step of the main program binds the last of their symbols: those
// of inputs and of the rank are bound before.
void check_conditions(const EngineData& engine) {
  constexpr size_t kMaxChecks = 1 << 16;
  require(engine.checks.size() <= kMaxChecks, "the program", "has too many conditions on sizes");
  SpelledSymbols bound = spelled_symbols(engine.main);
  for (const auto& [name, info] : engine.main.symbols) {
    if (info.by_rank) bound.emplace(name, name);
  }
  for (const Step& step : engine.main.steps) {
    for (const SymbolBinding& binding : step.binds) bound.emplace(binding.symbol, binding.symbol);
  }
  for (const SizeCheck& check : engine.checks) {
    for (const std::string& symbol : symbols_of(check.condition))
      require(
          bound.contains(symbol), symbol,
          "is used by a condition on sizes, but no input, no rank and no step of the main program binds it");
  }
}

// The ports of a nested program are its parent's buffers, whose places `validate` checked.
void check_nested_places(const Program& program, Place expected) {
  for (const Program& nested : program.nested) {
    for (const auto* ports : {&nested.inputs, &nested.outputs}) {
      for (const Port& port : *ports)
        require(nested.buffers[port.buffer].place == expected, port.name,
                "is in another place than the branch or loop that it belongs to");
    }
    check_nested_places(nested, expected);
  }
}

void check_states(const EngineData& engine) {
  const auto& bound = engine.signature.mutated_inputs;
  require(engine.state_values.size() == engine.main.states.size(), "the program",
          "has more or fewer initial values than states");
  for (size_t i = 0; i < engine.state_values.size(); ++i) {
    if (i < bound.size() && bound[i]) continue;
    const Port& port = engine.main.states[i];
    const Tensor& value = engine.state_values[i];
    require(has_constant_shape(port.type), port.name, "is a state of the context and has no fixed size");
    const bool same_shape = std::ranges::equal(port.type.shape, value.shape,
                                               [](const Dim& dim, int64_t size) { return dim == Dim(size); });
    require(value.dtype == port.type.dtype && same_shape, port.name, "has an initial value of another type");
  }
}

}  // namespace

void validate_engine(const EngineData& engine) {
  require(engine.devices.size() <= kMaxDevices, engine.name, "names too many devices");
  const size_t images = engine.images.size(), weights = engine.weights.size();
  for (const Image& image : engine.images)
    require(!image.code.empty(), image.kernel, "is an image without code");
  validate(engine.init, images, weights, engine.devices, ProgramRole::kInit);
  validate(engine.main, images, weights, engine.devices, ProgramRole::kMain);
  require(engine.init.inputs.empty() && engine.init.states.empty(), "init", "has inputs or states");
  for (const WeightData& weight : engine.weights) check_weight(engine, weight);
  check_uses(engine, engine.init);
  check_uses(engine, engine.main);
  check_signature(engine);
  check_conditions(engine);
  check_states(engine);
  for (const Program* program : {&engine.main, &engine.init})
    check_nested_places(*program, place_of_nested(engine.devices.size()));
}

}  // namespace ingot::core
