// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/half_functions.h"

#include <algorithm>

#include "loops/expand_math.h"
#include "loops/functions.h"

namespace ingot::core::cuda {
namespace {

// gelu: 2^-p(|v|) is the normal distribution at -|v|, within 4e-6 of it up to where it falls below 2^-26
// (least squares of -log2, reweighted until the largest errors are equal); p grows without bound, so that
// nothing has to be selected. tanh: near 0, where 1 - 2 / (e^2v + 1) cancels, the series.
constexpr std::string_view kHalfFunctions = R"cuda(
// ---- Functions for results that are rounded to halves ----
DEVICE f32 half_exp2(f32 v) { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
DEVICE f32 half_reciprocal(f32 v) { f32 r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
DEVICE f32 half_exp(f32 v) { return half_exp2(v * 1.44269504f); }
DEVICE f32 half_sigmoid(f32 v) { return half_reciprocal(1 + half_exp(-v)); }
DEVICE f32 half_tanh(f32 v) {
  const f32 square = v * v, small = fmaf(v * square, fmaf(square, 0.133333333f, -0.333333333f), v);
  return fabsf(v) < 0.125f ? small : fmaf(-2, half_reciprocal(1 + half_exp2(v * 2.88539008f)), 1);
}
DEVICE f32 half_gelu(f32 v) {
  f32 bounded;  // of infinity, whose product with 0 would be no number
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(bounded) : "f"(v), "f"(64.0f));
  const f32 t = fabsf(bounded);
  f32 p = fmaf(1.75620266e-06f, t, -6.00930944e-05f);
  p = fmaf(p, t, 0.000919089594f);
  p = fmaf(p, t, -0.0084640868f);
  p = fmaf(p, t, 0.0538713597f);
  p = fmaf(p, t, 0.458554953f);
  p = fmaf(p, t, 1.1512115f);
  p = fmaf(p, t, 1);
  return fmaf(-t, half_exp2(-p), fmaxf(v, -0.0f));
}
)cuda";

struct HalfFunction {
  const loops::Function* function;
  std::string_view name;
};
constexpr HalfFunction kHalfFunctionNames[] = {{&loops::functions::exp, "half_exp"},
                                               {&loops::functions::exp2, "half_exp2"},
                                               {&loops::functions::gelu, "half_gelu"},
                                               {&loops::functions::sigmoid, "half_sigmoid"},
                                               {&loops::functions::tanh, "half_tanh"}};

bool is_half_function(const loops::Function& function, DType dtype) {
  return dtype == DType::kF32 && !half_function(function).empty();
}

bool stores_halves(const loops::Kernel& kernel) {
  return std::ranges::all_of(kernel.stages, [&](const loops::Stage& stage) {
    return !stage.store || is_half(kernel.buffers[static_cast<size_t>(stage.store->buffer)].type.dtype);
  });
}

}  // namespace

std::string_view half_functions_text() { return kHalfFunctions; }

std::string_view half_function(const loops::Function& function) {
  const auto found = std::ranges::find(kHalfFunctionNames, &function, &HalfFunction::function);
  return found == std::end(kHalfFunctionNames) ? std::string_view() : found->name;
}

loops::Kernel expand_functions(loops::Kernel kernel, bool exactly) {
  if (exactly || !stores_halves(kernel)) return loops::expand_math(std::move(kernel));
  return loops::expand_math(std::move(kernel), is_half_function);
}

std::optional<loops::Kernel> expand_functions(const std::optional<loops::Kernel>& kernel, bool exactly) {
  if (!kernel) return std::nullopt;
  return expand_functions(*kernel, exactly);
}

}  // namespace ingot::core::cuda
