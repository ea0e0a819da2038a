// SPDX-License-Identifier: Apache-2.0
// Keeps an engine in use: loads and runs it, prints "loaded", waits for a line, and runs it again.
#include <cstdio>
#include <cstring>
#include <exception>

#include "ingot/context.h"

namespace {

std::vector<ingot::Tensor> inputs_of(const ingot::Engine& engine) {
  std::vector<ingot::Tensor> inputs;
  for (const ingot::Port& port : engine.inputs()) {
    ingot::Tensor& input = inputs.emplace_back(ingot::Tensor::empty(port.dtype, port.min));
    for (int64_t i = 0; i < input.elements(); ++i) static_cast<float*>(input.data())[i] = 0.25F;
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const ingot::Engine engine = ingot::Engine::load(argv[1]);
    ingot::Context context(engine);
    const std::vector<ingot::Tensor> inputs = inputs_of(engine);
    const std::vector<ingot::Tensor> before = context.run(inputs);
    std::puts("loaded");
    std::fflush(stdout);
    std::getchar();
    const std::vector<ingot::Tensor> after = context.run(inputs);
    const size_t bytes = static_cast<size_t>(before[0].elements()) * sizeof(float);
    std::puts(std::memcmp(before[0].data(), after[0].data(), bytes) == 0 ? "same" : "different");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
