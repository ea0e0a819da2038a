// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "cli/output_file.h"
#include "cli/tensor_file.h"

namespace ingot::cli {
namespace {

void* allocate_output(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                      size_t bytes) {
  auto& outputs = *static_cast<std::vector<Array>*>(user);
  if (outputs.size() <= index) outputs.resize(index + 1);
  Array& output = outputs[index];
  output.dtype = dtype;
  output.shape.assign(shape, shape + rank);
  output.data.resize(std::max<size_t>(bytes, 1));
  return output.data.data();
}

// What the callback of a run needs.
struct Sight {
  const SeeValue& see;
  std::exception_ptr failure = nullptr;
};

void show_value(void* user, size_t step, const char* /*name*/, const ingot_tensor* value) {
  auto& sight = *static_cast<Sight*>(user);
  if (sight.failure) return;
  try {
    sight.see(step, *value);
  } catch (...) {  // exceptions must not cross the C API
    sight.failure = std::current_exception();
  }
}

}  // namespace

EngineHandle open_engine(const RunCommand& command) {
  const ingot_load_options options{
      .struct_size = sizeof(ingot_load_options),
      .verify = command.verify == "full" ? INGOT_VERIFY_FULL : INGOT_VERIFY_LAZY,
      .trust = command.trust == "signed" ? INGOT_TRUST_SIGNED
               : command.trust == "none" ? INGOT_TRUST_NONE
                                         : INGOT_TRUST_ANY,
      .memory = command.memory == "copy" ? INGOT_MEMORY_COPY : INGOT_MEMORY_MAP,
      .trusted_keys = command.trusted_keys.empty() ? nullptr : command.trusted_keys.c_str(),
      .without_weights = command.weights.empty() ? 0 : 1,
      .weight_budget = command.weight_budget.empty() ? nullptr : command.weight_budget.c_str(),
      .gpu = std::max(command.gpu, 0),
      .cpu = command.cpu.empty() ? nullptr : command.cpu.c_str()};
  check(ingot_set_threads(command.threads));
  ingot_engine* loaded = nullptr;
  check(ingot_engine_load(command.engine.c_str(), &options, &loaded));
  EngineHandle engine(loaded, &ingot_engine_free);
  if (!command.weights.empty()) refit_from_files(loaded, command.weights, false);
  return engine;
}

Session::Session(EngineHandle engine, bool without_graphs) : engine_(std::move(engine)) {
  for (size_t i = 0; i < ingot_engine_input_count(engine_.get()); ++i) {
    ingot_port port{};
    port.struct_size = sizeof(port);
    check(ingot_engine_input(engine_.get(), i, &port));
    ports_.push_back(port);
  }
  inputs_.resize(ports_.size());
  ingot_context* context = nullptr;
  const ingot_context_options options{.struct_size = sizeof(options),
                                      .without_cuda_graphs = without_graphs ? 1 : 0};
  check(ingot_context_create_with(engine_.get(), &options, &context));
  context_.reset(context);
}

Session::Session(const RunCommand& command) : Session(open_engine(command), command) {}

Session::Session(EngineHandle engine, const RunCommand& command)
    : Session(std::move(engine), command.without_graphs) {
  if (!command.output.empty()) {
    check_array_path(command.output, ingot_engine_output_count(engine_.get()));
    check_output_path(command.output);
  }
  read_inputs(command);
  read_shapes(command);
  make_missing_inputs(command.seed);
}

Session::Session(EngineHandle engine, const std::vector<Array>& inputs) : Session(std::move(engine)) {
  if (inputs.size() != ports_.size())
    throw CommandError(fmt::format("the engines have {} and {} inputs: they cannot run the same",
                                   inputs.size(), ports_.size()));
  const bool has_names = std::ranges::all_of(inputs, [&](const Array& input) {
    return std::ranges::find(ports_, input.name, &ingot_port::name) != ports_.end();
  });
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs_[has_names ? find_port(inputs[i].name, "of the other engine") : i] = inputs[i];
  check_sizes();
}

size_t Session::find_port(const std::string& name, const std::string& origin) const {
  const auto port = std::ranges::find_if(ports_, [&](const ingot_port& p) { return name == p.name; });
  if (port != ports_.end()) return static_cast<size_t>(port - ports_.begin());
  std::vector<std::string> names;
  for (const ingot_port& known : ports_) names.emplace_back(known.name);
  throw CommandError(
      fmt::format("the engine has no input '{}' ({}); it has {}", name, origin, fmt::join(names, ", ")));
}

void Session::take_input(Array array, const std::string& origin) {
  Array& input = inputs_[find_port(array.name, origin)];
  if (input.dtype != 0)
    throw CommandError(fmt::format("input '{}' is given twice ({})", array.name, origin), 2);
  input = std::move(array);
}

void Session::read_inputs(const RunCommand& command) {
  size_t position = 0;
  for (const std::string& text : command.inputs) {
    const size_t equals = text.find('=');
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::vector<Array> arrays = read_arrays(path);
    if (equals != std::string::npos) {
      if (arrays.size() != 1)
        throw CommandError(fmt::format("'{}' holds {} arrays, not one", path, arrays.size()), 2);
      arrays[0].name = text.substr(0, equals);
    }
    for (Array& array : arrays) {
      if (array.name.empty() && position == ports_.size())
        throw CommandError(
            fmt::format("'{}' is one more than the {} inputs of the engine", path, ports_.size()), 2);
      if (array.name.empty()) array.name = ports_[position++].name;
      take_input(std::move(array), fmt::format("'{}'", path));
    }
  }
}

// Reads the sizes of inputs that come from no file.
void Session::read_shapes(const RunCommand& command) {
  for (const auto& [name, shape] : parse_shape_list(command.shapes)) {
    Array& input = inputs_[find_port(name, "--shapes")];
    if (input.dtype != 0)
      throw CommandError(fmt::format("input '{}' is given both by a file and by --shapes", name), 2);
    input = {.name = name, .dtype = ports_[find_port(name, "--shapes")].dtype, .shape = shape, .data = {}};
  }
}

// The symbolic sizes determined by the given inputs.
KnownSizes Session::known_sizes() const {
  KnownSizes known;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const std::vector<int64_t>& shape = inputs_[i].shape;
    if (shape.size() != static_cast<size_t>(ports_[i].rank)) continue;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (ports_[i].min[axis] != ports_[i].max[axis]) known.emplace(ports_[i].dims[axis], shape[axis]);
    }
  }
  return known;
}

void Session::make_missing_inputs(uint64_t seed) {
  std::vector<size_t> random;
  const KnownSizes known = known_sizes();
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (inputs_[i].dtype == 0) inputs_[i] = smallest_array(ports_[i], known);
    if (inputs_[i].data.empty()) random.push_back(i);
  }
  check_sizes();
  for (const size_t i : random) fill_randomly(inputs_[i], seed + i);
}

std::string Session::chosen_shapes() const {
  std::vector<std::string> shapes;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const ingot_port& port = ports_[i];
    if (std::equal(port.min, port.min + port.rank, port.max)) continue;
    shapes.push_back(fmt::format("{}:{}", port.name, fmt::join(inputs_[i].shape, "x")));
  }
  return fmt::format("{}", fmt::join(shapes, ","));
}

// Reports errors in the sizes before memory is allocated for the inputs.
void Session::check_sizes() {
  std::vector<ingot_tensor> tensors = views();
  char nothing = 0;
  for (ingot_tensor& tensor : tensors) tensor.data = tensor.data == nullptr ? &nothing : tensor.data;
  size_t dims = 0;
  check(ingot_context_output_shapes(context_.get(), tensors.size(), tensors.data(), nullptr, 0, &dims));
}

std::vector<ingot_tensor> Session::views() {
  std::vector<ingot_tensor> tensors;
  for (Array& input : inputs_) {
    tensors.push_back({.data = input.data.data(),
                       .dtype = input.dtype,
                       .rank = static_cast<int32_t>(input.shape.size()),
                       .shape = input.shape.data(),
                       .strides = nullptr});
  }
  return tensors;
}

const std::vector<Array>& Session::run() {
  const std::vector<ingot_tensor> tensors = views();
  check(ingot_context_run(context_.get(), tensors.size(), tensors.data(), &allocate_output, &outputs_));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ingot_port port{};
    port.struct_size = sizeof(port);
    check(ingot_engine_output(engine_.get(), i, &port));
    outputs_[i].name = port.name;
    int64_t elements = 1;
    for (const int64_t size : outputs_[i].shape) elements *= size;
    outputs_[i].data.resize(static_cast<size_t>(elements) * element_bits(outputs_[i].dtype) / 8);
  }
  return outputs_;
}

const std::vector<Array>& Session::run(const SeeValue& see) {
  Sight sight{see};
  check(ingot_context_set_observer(context_.get(), &show_value, &sight));
  run();
  check(ingot_context_set_observer(context_.get(), nullptr, nullptr));
  if (sight.failure) std::rethrow_exception(sight.failure);
  return outputs_;
}

std::string Session::inspect() const {
  ingot_text* text = nullptr;
  check(ingot_engine_inspect(engine_.get(), &text));
  return take_text(text);
}

bool Session::is_on_device() const {
  ingot_weight_memory memory{};
  memory.struct_size = sizeof(memory);
  check(ingot_engine_weight_memory(engine_.get(), &memory));
  return memory.available > 0;
}

void Session::set_profiling() { check(ingot_context_set_profiling(context_.get(), 1)); }

std::string Session::profile() {
  ingot_text* text = nullptr;
  check(ingot_context_profile(context_.get(), &text));
  return take_text(text);
}

}  // namespace ingot::cli
