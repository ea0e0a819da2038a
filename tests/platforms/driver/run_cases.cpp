// SPDX-License-Identifier: Apache-2.0
// Runs every engine of a folder on the inputs of its case, and compares the outputs with those of the system
// that wrote them, bit for bit. Prints the names whose outputs differ with the largest difference, and a last
// line "ENGINES engines, OUTPUTS outputs, DIFFERENT differ". Exit status 1 if an engine fails.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "ingot/context.h"
#include "tests/platforms/case_file.h"

namespace {

using ingot::core::test::bytes_of;
using ingot::core::test::Case;

// Relative to the largest element; only f32 and f64 differ in practice.
double difference(const ingot::Tensor& expected, const ingot::Tensor& got) {
  const auto at = [](const ingot::Tensor& tensor, size_t i) {
    return tensor.dtype() == ingot::DType::kF64
               ? static_cast<const double*>(tensor.data())[i]
               : static_cast<double>(static_cast<const float*>(tensor.data())[i]);
  };
  if (expected.dtype() != ingot::DType::kF64 && expected.dtype() != ingot::DType::kF32) return INFINITY;
  double largest = 0, most = 0;
  for (size_t i = 0; i < static_cast<size_t>(expected.elements()); ++i) {
    if (std::isnan(at(expected, i)) != std::isnan(at(got, i))) return INFINITY;
    largest = std::fmax(largest, std::fabs(at(expected, i)));
    if (at(expected, i) != at(got, i)) most = std::fmax(most, std::fabs(at(expected, i) - at(got, i)));
  }
  return most / std::fmax(largest, 1e-300);
}

// Whether all outputs are the same bits.
bool run(const std::filesystem::path& engine, const Case& expected) {
  ingot::Context context(ingot::Engine::load(engine));
  const std::vector<ingot::Tensor> outputs = context.run(expected.inputs);
  bool is_same = outputs.size() == expected.outputs.size();
  for (size_t i = 0; is_same && i < outputs.size(); ++i) {
    is_same = outputs[i].shape() == expected.outputs[i].shape();
    if (!is_same || std::memcmp(outputs[i].data(), expected.outputs[i].data(), bytes_of(outputs[i])) == 0)
      continue;
    std::printf("%s: output %zu differs by %g\n", engine.stem().string().c_str(), i,
                difference(expected.outputs[i], outputs[i]));
    return false;
  }
  if (!is_same) std::printf("%s: other outputs\n", engine.stem().string().c_str());
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  size_t engines = 0, outputs = 0, different = 0, failed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() != ".ingot") continue;
    try {
      const Case expected =
          ingot::core::test::read_case(std::filesystem::path(entry.path()).replace_extension(".case"));
      ++engines;
      outputs += expected.outputs.size();
      different += run(entry.path(), expected) ? 0 : 1;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("%s: %s\n", entry.path().stem().string().c_str(), error.what());
    }
  }
  std::printf("%zu engines, %zu outputs, %zu differ\n", engines, outputs, different);
  return failed == 0 && engines > 0 ? 0 : 1;
}
