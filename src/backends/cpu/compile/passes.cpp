// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/passes.h"

#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/scaled_linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/winograd.h"
#include "ops/narrow_weight.h"
#include "passes/separate_windows.h"
#include "passes/target_passes.h"

namespace ingot::core::cpu {
namespace {

// Halves without a kernel template of their own are multiplied as f32, which is many times faster than plain
// loops, and rounds less. Weights of linear layers stay half as large.
ComputeDType fastest_dtype(const Node& contraction, const Target& target) {
  const DType own = contraction.results[0]->type.dtype;
  const KernelTemplate* kernel_template = find_template(*contraction.op);
  if (!is_half(own) || (kernel_template != nullptr && kernel_template->supports(contraction, target).yes))
    return {own};
  return {.dtype = DType::kF32, .converts_weight = !contraction.op->traits.has(Trait::kNarrowWeight)};
}

bool converts_weight(const Node& linear, DType stored) {
  return linear.operand_type(0).dtype == DType::kF32 && ops::is_narrow_weight(stored);
}

// Elements without a scale of their own are converted like other narrow weights.
bool reads_stored_weight(const StoredWeightForm& form, CpuFeatures features) {
  if (form.block == 0) return ops::is_narrow_weight(form.numbers);
  const bool is_byte = bit_width(form.numbers) == 8;
  return (form.is_packed || is_byte || is_half(form.numbers)) &&
         has_scaled_tiles(form.numbers, form.block, features);
}

bool has_template_of_products(const Node& node) {
  const DType dtype = node.results[0]->type.dtype;
  return dtype == DType::kF32 || dtype == DType::kF64;
}

}  // namespace

std::vector<Pass> own_passes(const Target& target) {
  const auto dtype = [target](const Node& contraction) { return fastest_dtype(contraction, target); };
  const auto channels = [target](const Node& convolution) { return channel_multiple(convolution, target); };
  const auto multiplies = [target](const Node& contraction) {
    return has_integer_template(contraction, target);
  };
  const auto winograd = [features = features_of(target)](const Node& convolution) {
    return is_faster_by_winograd(convolution, features);
  };
  const auto reads_stored = [features = features_of(target)](const Node&, const StoredWeightForm& form) {
    return reads_stored_weight(form, features);
  };
  return {
      {.name = "keep_quantized_weights",
       .stage = Stage::kAdapt,
       .run =
           [=](Graph graph, Rewrites& rewrites) {
             return keep_quantized_weights(std::move(graph), reads_stored, rewrites);
           },
       .minimum_level = 3,
       .changes_rounding = true,
       .why = "before widen_contractions: products of halves by such weights are computed in f32"},
      {.name = "expand_transposed_convolutions",
       .stage = Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return expand_transposed_convolutions(std::move(graph), has_separate_windows, rewrites);
           },
       .minimum_level = 3,
       .why = "before widen_contractions: without sums of windows, halves are multiplied as they are"},
      {.name = "pad_channels",
       .stage = Stage::kAdapt,
       .run = [=](Graph graph,
                  Rewrites& rewrites) { return pad_channels(std::move(graph), channels, rewrites); },
       .minimum_level = 3,
       .why = "before widen_contractions: images of three channels are multiplied as pairs of bf16, too"},
      {.name = "widen_contractions",
       .stage = Stage::kAdapt,
       .run = [=](Graph graph,
                  Rewrites& rewrites) { return widen_contractions(std::move(graph), dtype, rewrites); },
       .minimum_level = 3,
       .why = "before expand_transposed_convolutions, which leaves out halves"},
      {.name = "keep_narrow_weights",
       .stage = Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return keep_narrow_weights(std::move(graph), converts_weight, rewrites);
           },
       .minimum_level = 3,
       .why = "before layouts: the weight is packed as it is stored"},
      {.name = "shift_to_unsigned",
       .stage = Stage::kAdapt,
       .run = [multiplies](
                  Graph graph,
                  Rewrites& rewrites) { return shift_to_unsigned(std::move(graph), multiplies, rewrites); },
       .minimum_level = 3,
       .why = "before layouts: the kernel template of the result requests some"},
      {.name = "expand_transposed_convolutions",
       .stage = Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return expand_transposed_convolutions(std::move(graph), has_template_of_products, rewrites);
           },
       .minimum_level = 3,
       .why = "those that remain are f32 now; before layouts, which the kernel templates of its results "
              "request"},
      {.name = "use_winograd",
       .stage = Stage::kLayout,
       .run = [=](Graph graph,
                  Rewrites& rewrites) { return use_winograd(std::move(graph), winograd, rewrites); },
       .minimum_level = 3,
       .changes_rounding = true,
       .why = "before layouts are assigned: its kernel template needs others"},
  };
}

}  // namespace ingot::core::cpu
