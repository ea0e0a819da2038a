// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/lower_contraction.h"

#include <algorithm>
#include <array>

#include "backends/cuda/compile/contraction.h"
#include "backends/cuda/compile/library_convolution.h"
#include "backends/cuda/compile/library_kernel.h"
#include "backends/cuda/compile/library_product.h"
#include "backends/cuda/compile/template_step.h"
#include "backends/cuda/images/library_call.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

int64_t library_choices(const Target& target) { return target.level == 4 ? 2 : kLibraryChoices; }

Twin twin_of(const Members& members, const RegionKernel& epilogue) {
  const Node* node = find_twin(members);
  if (node == nullptr) return {};
  const auto found = std::ranges::find(epilogue.buffers, node->results[0]);
  invariant(found != epilogue.buffers.end(), "the epilogue of two products reads both");
  return {node, static_cast<size_t>(found - epilogue.buffers.begin())};
}

}  // namespace

void add_library_convolutions(LoweredStep& step, const Node& convolution, const RegionKernel& epilogue,
                              std::span<const Value* const> arguments, const Target& target) {
  const int64_t version = library_version(kCudnn, target);
  if (version == 0) return;
  const LibraryConvolutionSite site{.node = convolution,
                                    .epilogue = epilogue.kernel,
                                    .buffers = epilogue.buffers,
                                    .arguments = arguments,
                                    .architecture = target.device};
  std::vector<LoweredKernel> kernels = library_convolutions(site, version, library_choices(target));
  if (kernels.empty()) return;
  step.may_overwrite.clear();  // nothing says when the library has read its operands
  std::ranges::move(kernels, std::back_inserter(step.others));
}

bool knows_statistics(const Members& members, const Node& contraction) {
  if (contraction.op != &ops::normalized_linear) return true;
  return std::ranges::all_of(std::array{ops::kNormalizedMean, ops::kNormalizedScale}, [&](size_t operand) {
    return !contraction.has_operand(operand) ||
           std::ranges::find(members.nodes, contraction.operands[operand]->producer) != members.nodes.end();
  });
}

LoweredStep lower_contraction(const Members& all, const Node& contraction, const SymbolTable& symbols,
                              const Target& target) {
  const NormedMembers split = split_members(all);
  const Members& members = split.members;
  const RegionKernel epilogue = epilogue_of(members, contraction);
  const std::optional<RegionKernel> prologue =
      prologue_of(members, {contraction.operands.data(), 1}, symbols);
  const Twin twin = twin_of(members, epilogue);
  const auto is_own_weight = [&](const Value* operand) {
    return operand == nullptr || is_weight(*members.outer.at(operand));
  };
  const auto are_weights = [&](size_t first, size_t count) {
    const auto are_those = [&](const Node& node) {
      const auto operands = given_operands(node);
      return std::ranges::all_of(operands.subspan(first, std::min(count, operands.size() - first)),
                                 is_own_weight);
    };
    return are_those(contraction) && (!twin || are_those(*twin.node));
  };
  ContractionSite site{.node = contraction,
                       .twin = twin,
                       .b_is_weight = are_weights(1, 1),
                       .columns_are_weights = are_weights(2, contraction.operands.size()),
                       .rounds_to_tf32 = rounds_to_tf32(target),
                       .exact_functions = has_exact_functions(target),
                       .architecture = target.device,
                       .symbols = symbols,
                       .norms = row_norms(split, contraction, epilogue.buffers)};
  if (prologue) site.prologue = prologue->kernel;
  const auto lower = [&](const ProductTactic& tactic) {
    return kernel_of_template(write_contraction(site, epilogue.kernel, tactic), contraction, target);
  };
  const std::vector<ProductTactic> ranked = rank_tactics(site, epilogue.kernel);
  std::vector<const Value*> others;
  for (size_t i = 1; i < epilogue.buffers.size(); ++i)
    if (site.norms.find(i) == nullptr && !(twin && i == twin.buffer)) others.push_back(epilogue.buffers[i]);
  for (const RowStatistics& rows : split.statistics) others.push_back(rows.moments);
  if (split.moments != nullptr) others.push_back(split.moments);
  for (const StatisticValue& kept : split.kept) others.push_back(kept.value);
  if (prologue) std::ranges::copy(read_buffers(*prologue), std::back_inserter(others));
  for (size_t i = 1; twin && i < twin.node->operands.size(); ++i)
    if (twin.node->has_operand(i)) others.push_back(twin.node->operands[i]);
  LoweredStep step = lower_template(lower(ranked[0]), all, contraction, others);
  for (const ProductTactic& tactic : tactics_to_time(std::span(ranked), target))
    step.others.push_back(lower(tactic));
  if (contraction.op == &ops::convolution) {
    const std::vector<const Value*> arguments = template_arguments(members, contraction, others);
    add_library_convolutions(step, contraction, epilogue, arguments, target);
    return step;
  }
  const int64_t version = library_version(kCublasLt, target);
  if (version == 0 || prologue || twin) return step;
  for (LoweredKernel& kernel :
       library_products(site, epilogue.kernel, step.arguments.size(), version, library_choices(target)))
    step.others.push_back(std::move(kernel));
  return step;
}

}  // namespace ingot::core::cuda
