// SPDX-License-Identifier: Apache-2.0
// Runs every engine of a folder on the inputs of its case, and compares the outputs with those of the system
// that wrote them, bit for bit. Prints for each output that differs its engine, the bits of its elements and
// the largest difference, and a last line "ENGINES engines, OUTPUTS outputs, DIFFERENT differ". Exit status 1
// if an engine fails.
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

double element(const ingot::Tensor& tensor, size_t i) {
  if (tensor.dtype() == ingot::DType::kF64) return static_cast<const double*>(tensor.data())[i];
  if (tensor.dtype() == ingot::DType::kF32)
    return static_cast<double>(static_cast<const float*>(tensor.data())[i]);
  const uint32_t bits = uint32_t{static_cast<const uint16_t*>(tensor.data())[i]} << 16;
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return static_cast<double>(number);
}

bool is_compared_by_value(ingot::DType dtype) {
  return dtype == ingot::DType::kF64 || dtype == ingot::DType::kF32 || dtype == ingot::DType::kBF16;
}

// Relative to the largest element; infinite for dtypes whose results must be the same bits.
double difference(const ingot::Tensor& expected, const ingot::Tensor& got) {
  if (!is_compared_by_value(expected.dtype())) return INFINITY;
  double largest = 0, most = 0;
  for (size_t i = 0; i < static_cast<size_t>(expected.elements()); ++i) {
    const double a = element(expected, i), b = element(got, i);
    if (std::isnan(a) != std::isnan(b)) return INFINITY;
    if (!std::isinf(a)) largest = std::fmax(largest, std::fabs(a));
    if (a != b) most = std::fmax(most, std::fabs(a - b));
  }
  return most / std::fmax(largest, 1e-300);
}

// Whether all outputs are the same bits.
bool run(const std::filesystem::path& engine, const Case& expected) {
  ingot::Context context(ingot::Engine::load(engine));
  const std::vector<ingot::Tensor> outputs = context.run(expected.inputs);
  bool is_different = false, is_same = outputs.size() == expected.outputs.size();
  for (size_t i = 0; is_same && i < outputs.size(); ++i) {
    is_same = outputs[i].shape() == expected.outputs[i].shape();
    if (!is_same || std::memcmp(outputs[i].data(), expected.outputs[i].data(), bytes_of(outputs[i])) == 0)
      continue;
    std::printf("%s: output %zu of %d bits differs by %g\n", engine.stem().string().c_str(), i,
                static_cast<int>(bit_width(outputs[i].dtype())), difference(expected.outputs[i], outputs[i]));
    is_different = true;
  }
  if (!is_same) std::printf("%s: other outputs\n", engine.stem().string().c_str());
  return is_same && !is_different;
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
