// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/one_dtype.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ingot::core::aten {
namespace {

struct Rule {
  std::string_view target;                     // without the overload
  std::array<std::string_view, 5> operands{};  // the others are compared with the first
  bool takes_wide = false;                     // f32 is allowed for all others if the first is f16 or bf16
};

constexpr bool kTakesWide = true;
constexpr std::array<std::string_view, 5> kAffine = {"input", "weight", "bias"};
constexpr std::array<std::string_view, 5> kStatistics = {"input", "weight", "bias", "running_mean",
                                                         "running_var"};
constexpr Rule kRules[] = {
    {"aten._cdist_forward", {"x1", "x2"}},
    {"aten._native_batch_norm_legit", kStatistics, kTakesWide},
    {"aten._native_batch_norm_legit_no_training", kStatistics, kTakesWide},
    {"aten._prelu_kernel", {"self", "weight"}},
    {"aten._unsafe_index_put", {"self", "values"}},
    {"aten.addbmm", {"self", "batch1", "batch2"}},
    {"aten.addmm", {"self", "mat1", "mat2"}},
    {"aten.addmv", {"self", "mat", "vec"}},
    {"aten.baddbmm", {"self", "batch1", "batch2"}},
    {"aten.batch_norm", kStatistics, kTakesWide},
    {"aten.bilinear", {"input1", "input2", "weight", "bias"}},
    {"aten.binary_cross_entropy", {"self", "target", "weight"}},
    {"aten.cdist", {"x1", "x2"}},
    {"aten.cross", {"self", "other"}},
    {"aten.cross_entropy_loss", {"self", "weight"}},
    {"aten.cudnn_batch_norm", kStatistics, kTakesWide},
    {"aten.group_norm", kAffine, kTakesWide},
    {"aten.heaviside", {"self", "values"}},
    {"aten.index_add", {"self", "source"}},
    {"aten.index_copy", {"self", "source"}},
    {"aten.index_put", {"self", "values"}},
    {"aten.index_reduce", {"self", "source"}},
    {"aten.instance_norm", kStatistics, kTakesWide},
    {"aten.isclose", {"self", "other"}},
    {"aten.layer_norm", kAffine, kTakesWide},
    {"aten.lerp", {"self", "end", "weight"}},
    {"aten.linalg_cross", {"self", "other"}},
    {"aten.linalg_vecdot", {"x", "y"}},
    {"aten.native_batch_norm", kStatistics, kTakesWide},
    {"aten.native_group_norm", kAffine, kTakesWide},
    {"aten.native_layer_norm", kAffine, kTakesWide},
    {"aten.nll_loss", {"self", "weight"}},
    {"aten.nll_loss2d", {"self", "weight"}},
    {"aten.nll_loss_forward", {"self", "weight"}},
    {"aten.nll_loss_nd", {"self", "weight"}},
    {"aten.prelu", {"self", "weight"}},
    {"aten.vdot", {"self", "other"}},
};

const Rule* find_rule(std::string_view target) {
  const std::string_view name = target.substr(0, target.rfind('.'));
  const auto* rule = std::ranges::find(kRules, name, &Rule::target);
  return rule == std::end(kRules) ? nullptr : rule;
}

}  // namespace

void require_one_dtype(Call& call) {
  const Rule* rule = find_rule(call.node().target);
  if (rule == nullptr) return;
  std::string_view first;  // the others are compared with it
  DType expected{};
  bool may_widen = rule->takes_wide;
  for (const std::string_view operand : rule->operands) {
    if (operand.empty() || !call.has(operand) || !call.is_tensor(operand)) continue;
    const DType dtype = call.tensor_meta(operand).dtype;
    const bool widens = may_widen && !first.empty() && is_half(expected) && dtype == DType::kF32;
    if (!first.empty()) may_widen = false;
    if (first.empty() || widens) {
      first = operand;
      expected = dtype;
    } else if (dtype != expected) {
      call.refuse(fmt::format("{} is {} and {} is {}, but torch requires equal dtypes", first, name(expected),
                              operand, name(dtype)));
    }
  }
}

}  // namespace ingot::core::aten
