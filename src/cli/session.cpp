// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "cli/random_array.h"

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

}  // namespace

Session::Session(const RunCommand& command) {
  const ingot_load_options options{.struct_size = sizeof(ingot_load_options),
                                   .verify = command.verify == "full" ? INGOT_VERIFY_FULL : INGOT_VERIFY_LAZY,
                                   .trust = command.trust == "signed" ? INGOT_TRUST_SIGNED
                                            : command.trust == "none" ? INGOT_TRUST_NONE
                                                                      : INGOT_TRUST_ANY};
  check(ingot_set_threads(command.threads));
  ingot_engine* engine = nullptr;
  check(ingot_engine_load(command.engine.c_str(), &options, &engine));
  engine_.reset(engine);
  for (size_t i = 0; i < ingot_engine_input_count(engine); ++i) {
    ingot_port port{};
    port.struct_size = sizeof(port);
    check(ingot_engine_input(engine, i, &port));
    ports_.push_back(port);
  }
  inputs_.resize(ports_.size());
  read_inputs(command);
  make_missing_inputs(command);
  ingot_context* context = nullptr;
  check(ingot_context_create(engine, &context));
  context_.reset(context);
}

void Session::read_inputs(const RunCommand& command) {
  size_t position = 0;
  for (const std::string& text : command.inputs) {
    const size_t equals = text.find('=');
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::vector<Array> arrays = read_arrays(path);
    if (equals != std::string::npos) {
      if (arrays.size() != 1)
        throw CommandError(fmt::format("{} holds {} arrays, not one", path, arrays.size()), 2);
      arrays[0].name = text.substr(0, equals);
    }
    for (Array& array : arrays) {
      if (array.name.empty() && position < ports_.size()) array.name = ports_[position++].name;
      const auto port =
          std::ranges::find_if(ports_, [&](const ingot_port& p) { return array.name == p.name; });
      if (port == ports_.end())
        throw CommandError(fmt::format("the engine has no input \"{}\" ({})", array.name, path));
      inputs_[static_cast<size_t>(port - ports_.begin())] = std::move(array);
    }
  }
}

void Session::make_missing_inputs(const RunCommand& command) {
  const auto shapes = parse_shape_list(command.shapes);
  for (const auto& [name, shape] : shapes) {
    const bool known = std::ranges::any_of(ports_, [&](const ingot_port& port) { return name == port.name; });
    if (!known) throw CommandError(fmt::format("the engine has no input \"{}\" (--shapes)", name), 2);
  }
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (inputs_[i].dtype != 0) continue;
    const auto given = shapes.find(ports_[i].name);
    inputs_[i] = random_array(ports_[i], given == shapes.end() ? nullptr : &given->second, command.seed + i);
  }
}

const std::vector<Array>& Session::run() {
  std::vector<ingot_tensor> tensors;
  for (Array& input : inputs_) {
    tensors.push_back({.data = input.data.data(),
                       .dtype = input.dtype,
                       .rank = static_cast<int32_t>(input.shape.size()),
                       .shape = input.shape.data(),
                       .strides = nullptr});
  }
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

}  // namespace ingot::cli
