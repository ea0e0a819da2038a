// SPDX-License-Identifier: Apache-2.0
// Runs a plan of a kernel template on host memory, split unevenly, as threads would.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/compile/templates/kernel_template.h"
#include "types/tensor.h"

namespace ingot::core::cpu {

// Storage of a tensor in its layout, followed by a guard that must not change.
class HostBuffer {
 public:
  HostBuffer(const TensorType& type, const SymbolValues& symbols);
  double at(const std::vector<int64_t>& index) const;
  void set(const std::vector<int64_t>& index, double value);  // rounded
  std::byte* data() { return values_.data.get(); }
  DType dtype() const { return values_.dtype; }
  bool guard_is_whole() const;
  const std::vector<int64_t>& shape() const { return shape_; }

 private:
  int64_t offset(const std::vector<int64_t>& index) const;
  Layout layout_;
  std::vector<int64_t> shape_, storage_;  // of the tensor, of its layout's axes
  Tensor values_;  // [count_ + guard]; aligned to 64 bytes, like all buffers of weights and arenas
  int64_t count_;
};

// For PrintTo of a test's cases: "8x96x128".
std::string sizes_text(const std::vector<int64_t>& sizes);

// What a template multiplies, and for which processor.
struct Multiplication {
  const char* level;
  DType a = DType::kF32, b = DType::kF32;
};
void PrintTo(const Multiplication& multiplication, std::ostream* out);
inline constexpr Multiplication kMultiplyDoubles{"x86-64-v3", DType::kF64, DType::kF64};
inline constexpr Multiplication kMultiplyDoublesWide{"x86-64-v4", DType::kF64, DType::kF64};
inline constexpr Multiplication kMultiplyPairs{"x86-64-v4+bf16", DType::kBF16, DType::kBF16};
inline constexpr Multiplication kMultiplyQuads{"x86-64-v4+vnni", DType::kU8, DType::kI8};
inline constexpr Multiplication kMultiplyPairsByMatrices{"x86-64-v4+amx-tile+amx-bf16", DType::kBF16,
                                                         DType::kBF16};
inline constexpr Multiplication kMultiplyQuadsByMatrices{"x86-64-v4+amx-tile+amx-int8", DType::kU8,
                                                         DType::kI8};
inline constexpr Multiplication kMultiplyBytes{"x86-64-v3", DType::kU8, DType::kI8};
inline constexpr Multiplication kMultiplyBytesWide{"x86-64-v4", DType::kU8, DType::kI8};

// The name of a test of a case for a level of x86-64: what PrintTo says of the case, in letters that test
// names may have.
std::string test_name(std::string case_text, const std::string& level);
template <typename Case>
std::string template_test_name(const testing::TestParamInfo<std::tuple<Case, const char*>>& info) {
  return test_name(testing::PrintToString(std::get<0>(info.param)), std::get<1>(info.param));
}
template <typename Case>
std::string multiplication_test_name(const testing::TestParamInfo<std::tuple<Case, Multiplication>>& info) {
  return test_name(testing::PrintToString(std::get<0>(info.param)),
                   testing::PrintToString(std::get<1>(info.param)));
}

// Adjacent numbers that a step multiplies.
inline int numbers_a_step(DType dtype) { return std::max(32 / bit_width(dtype), 1); }
// The dtype of a template's sums, before any rounding.
inline DType sum_dtype(DType dtype) {
  return dtype == DType::kF64 ? dtype : is_floating(dtype) ? DType::kF32 : DType::kI32;
}
// How far sums of products may be off, beside those of f32.
inline double share_of_error(DType dtype) { return dtype == DType::kF64 ? 1e-9 : is_floating(dtype) ? 1 : 0; }

// The tactics that a case is run with: all for a few sizes, else the default.
inline std::vector<PanelTactic> tactics_to_try(std::vector<PanelTactic> ranked, int64_t size) {
  constexpr int64_t kDivisor = 16, kRest = 9;
  if (size % kDivisor != kRest) ranked.resize(1);
  return ranked;
}

// Numbers in [-1, 1], integers in [-100, 100], by `seed`.
HostBuffer random_buffer(const TensorType& type, const SymbolValues& symbols, size_t seed);

// Some elements become minus infinity, and all of the first row.
void hide_some(HostBuffer& mask, const std::vector<int64_t>& shape);

// Calls `function` for each index below `shape`.
void for_each_index(const std::vector<int64_t>& shape,
                    const std::function<void(const std::vector<int64_t>&)>& function);

// Compiles and runs the plan in three uneven parts; expects that nothing writes past the buffers or the
// scratch.
void run_template(const TemplateKernel& plan, const SymbolValues& symbols, std::vector<HostBuffer>& buffers);

}  // namespace ingot::core::cpu
