// SPDX-License-Identifier: Apache-2.0
// Runs a TorchScript file of `ingot.save(..., output_format="torchscript")` with LibTorch: run MODEL.pt
// SIZE... gives it one input of ones and prints the sum of the result.
#include <torch/script.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <vector>

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: run MODEL.pt SIZE...\n";
    return 2;
  }
  try {
    std::vector<int64_t> shape;
    for (int i = 2; i < count; ++i) shape.push_back(std::atoll(arguments[i]));
    torch::jit::Module module = torch::jit::load(arguments[1]);
    const c10::InferenceMode inference;
    const at::Tensor result = module.forward({torch::ones(shape)}).toTensor();
    std::cout << result.sizes() << " " << result.sum().item<double>() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
