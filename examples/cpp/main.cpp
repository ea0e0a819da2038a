// SPDX-License-Identifier: Apache-2.0
// Builds an engine from a .pt2 of torch.export, or loads one from a file, and runs it on made-up inputs.
//   example model.pt2|model.ingot [save.ingot]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "ingot/compile.h"
#include "ingot/context.h"

namespace {

// The least sizes that the engine takes; floats are 0.5, all else is zero.
ingot::Tensor make_input(const ingot::Port& port) {
  std::vector<int64_t> shape;
  for (const int64_t least : port.min) shape.push_back(std::max<int64_t>(least, 1));
  ingot::Tensor input = ingot::Tensor::empty(port.dtype, shape);
  std::memset(input.data(), 0, input.bytes());
  if (port.dtype == ingot::DType::kF32) std::ranges::fill(input.values<float>(), 0.5F);
  return input;
}

void print(const ingot::Port& port, const ingot::Tensor& output) {
  std::printf("%s: [", port.name.c_str());
  for (const int64_t size : output.shape()) std::printf(" %lld", static_cast<long long>(size));
  std::printf(" ]");
  if (output.dtype() == ingot::DType::kF32) {
    const auto values = output.values<float>();
    for (const float value : values.first(std::min<size_t>(values.size(), 4))) std::printf(" %.5f", value);
  }
  std::printf("\n");
}

void run(const ingot::Engine& engine) {
  ingot::Context context(engine);  // cheap; one per thread
  std::vector<ingot::Tensor> inputs, outputs;
  for (const ingot::Port& port : engine.inputs()) inputs.push_back(make_input(port));
  context.run(inputs, outputs);  // a second run would use the memory of `outputs` again
  const std::vector<ingot::Port> ports = engine.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) print(ports[i], outputs[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s model.pt2|model.ingot [save.ingot]\n", argv[0]);
    return 2;
  }
  try {
    const std::filesystem::path path = argv[1];
    const ingot::Engine engine =
        path.extension() == ".pt2" ? ingot::compile(path) : ingot::Engine::load(path);
    if (argc > 2) engine.save(argv[2]);
    run(engine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
