// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/all_passes.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "api/compiler/backends.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

namespace ingot::core {
namespace {

// Products of two computed values in f16, weights of few rows in bf16.
PrecisionChoice half_of(const PrecisionSite& site) {
  if (!site.has_fixed_weight) return {.operands = DType::kF16, .weight = DType::kF16};
  const bool is_row = site.contraction.operand_type(0).shape[0] == Dim(1);
  return {.operands = is_row ? DType::kF32 : DType::kF16, .weight = DType::kF16};
}

int64_t quads_of(const Node& node) {
  return node.op != &ops::convolution || node.attributes<ops::Convolution>().groups == 1 ? 4 : 0;
}

// A target that takes whatever it is offered, and wants the channels of convolutions last.
TargetRules eager_target() {
  const auto always = [](const Node&, const Node&) { return true; };
  const auto channels_last = [](const Node& node) {
    if (node.op != &ops::convolution) return LayoutRequest{};
    const Layout layout = Layout::permutation(std::vector{0, 2, 3, 1});
    return LayoutRequest{.operands = {layout}, .results = {layout}};
  };
  return {.layouts = channels_last,
          .fuse = {always, always, always, always},
          .precision = half_of,
          .quantized = quads_of};
}

// A fixed device of each backend, so that its passes answer alike everywhere.
Target target_of(const Backend& backend) {
  const std::string_view words = backend.name() == "cpu" ? "x86-64-v4+vnni" : "";
  return {.backend = std::string(backend.name()), .device = backend.device(words)};
}

}  // namespace

std::vector<Pass> all_passes() {
  std::vector<Pass> all = pipeline(eager_target());
  // Of passes that several backends have, those of GPUs are tried: they rewrite what the CPU's do, and more.
  for (const Backend* backend : std::views::reverse(api::backends()))
    std::ranges::move(backend->passes(target_of(*backend)), std::back_inserter(all));
  std::ranges::stable_sort(all, {}, &Pass::name);
  const auto repeated = std::ranges::unique(all, {}, &Pass::name);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

}  // namespace ingot::core
