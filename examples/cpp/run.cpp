// SPDX-License-Identifier: Apache-2.0
// Loads an engine and runs it on made-up inputs, by the names of its inputs and outputs.
//   run model.ingot
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "ingot/context.h"

namespace {

// The smallest sizes that the engine takes; floats are 0.5, all else is zero.
ingot::Tensor make_input(const ingot::Port& port) {
  std::vector<int64_t> shape;
  for (const int64_t smallest : port.min) shape.push_back(std::max<int64_t>(smallest, 1));
  ingot::Tensor input = ingot::Tensor::empty(port.dtype, shape);
  std::memset(input.data(), 0, input.bytes());
  if (port.dtype == ingot::DType::kF32) std::ranges::fill(input.values<float>(), 0.5F);
  if (port.dtype == ingot::DType::kF16)
    std::ranges::fill(input.values<ingot::Float16>(), ingot::Float16(0.5F));
  return input;
}

template <typename T>
void print_values(const ingot::Tensor& output) {
  const auto values = output.values<T>();
  for (const T value : values.first(std::min<size_t>(values.size(), 4)))
    std::printf(" %.5f", static_cast<double>(static_cast<float>(value)));
}

void print(const std::string& name, const ingot::Tensor& output) {
  std::printf("%s: [", name.c_str());
  for (const int64_t size : output.shape()) std::printf(" %lld", static_cast<long long>(size));
  std::printf(" ]");
  if (output.dtype() == ingot::DType::kF32) print_values<float>(output);
  if (output.dtype() == ingot::DType::kF16) print_values<ingot::Float16>(output);
  std::printf("\n");
}

void run(const ingot::Engine& engine) {
  ingot::Context context(engine, {.threads = 2});  // one per thread of the program, with threads of its own
  ingot::NamedTensors inputs;
  for (const ingot::Port& port : engine.inputs()) inputs[port.name] = make_input(port);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const ingot::NamedTensors outputs = context.run(inputs, {.deadline = deadline});
  for (const auto& [name, output] : outputs) print(name, output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s model.ingot\n", argv[0]);
    return 2;
  }
  try {
    const ingot::Engine engine = ingot::Engine::load(argv[1]);
    for (const auto& [key, value] : engine.metadata()) std::printf("%s = %s\n", key.c_str(), value.c_str());
    run(engine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
