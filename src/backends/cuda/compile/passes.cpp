// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/passes.h"

#include <algorithm>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/peer_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/kernel_abi.h"
#include "backends/steps/members.h"
#include "ir/side.h"
#include "loops/compose.h"
#include "ops/alias.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "passes/target_passes.h"

namespace ingot::core::cuda {
namespace {

bool uses_tensor_cores(const Node& node) { return has_tensor_cores(node.results[0]->type.dtype); }

// The template copies a chunk at a time.
int64_t channel_multiple(const Node& convolution) {
  constexpr size_t kImageRank = 4;
  const bool suits = uses_tensor_cores(convolution) && convolution.results[0]->type.rank() == kImageRank &&
                     convolution.attributes<ops::Convolution>().groups == 1;
  return suits ? chunk_of(convolution.results[0]->type.dtype) : 1;
}

// Bulk copies take the row of a window as the channels of one pixel.
int64_t window_row_multiple(const Node& convolution) {
  return is_half(convolution.results[0]->type.dtype) ? kMapInner : 0;
}

bool has_few_rows(const Node& norm, const Node& linear) {
  return are_on_one_side(norm, linear) && may_normalize(norm.operand_type(0));
}

// Rows that are a chain of short kernels. With fewer each block computes the moments alone; with more, the
// ends of products are not hidden, and moments lengthen them by more than a norm's kernel takes.
bool has_some_rows(const Node& linear) {
  constexpr int64_t kFewest = 17, kMost = 1023;
  const Shape& shape = linear.operand_type(0).shape;
  const Dim rows = product(Shape(shape.begin(), shape.end() - 1));
  return is_half(linear.operand_type(0).dtype) && is_tensor_core_contraction(linear) &&
         rows.constant().value_or(kFewest) >= kFewest && rows.constant().value_or(kMost) <= kMost;
}

// A norm's kernel takes little beside a long product, and statistics of rows keep that from tiles in turns.
bool is_short_product(const Node& linear) {
  constexpr int64_t kMost = int64_t{2} << 30;  // multiply-adds
  const Dim work = product(linear.results[0]->type.shape) * linear.operand_type(0).shape.back();
  return work.constant().value_or(0) <= kMost;
}

// The template copies old keys while earlier kernels run; with more queries it is arithmetic that takes time.
bool has_few_new_rows(const Node& attention, int64_t rows) {
  constexpr int64_t kMost = 16;
  const Shape& shape = attention.results[0]->type.shape;
  const auto queries = shape[shape.size() - 2].constant();
  return is_tensor_core_attention(attention) && queries && *queries <= kMost && rows <= kMost;
}

// New rows that are written to the cache, too, at the end of the graph.
std::vector<size_t> rows_of_writes(const Node& node) {
  if (!ops::is_attention(*node.op)) return {};
  std::vector<size_t> rows = computable_rows(node);
  std::erase(rows, size_t{ops::kQuery});
  return rows;
}

// The kernel of a sum of ranks may do it, too: with nothing beside it.
bool follows_reduction(const Node& node) {
  AliasOffsets aliases;
  return std::ranges::any_of(node.operands, [&](const Value* operand) {
    const Node* producer = operand == nullptr ? nullptr : aliases.root(operand)->producer;
    return producer != nullptr && has_peer_kernel(*producer);
  });
}

Graph recompute_new_rows(Graph graph, Rewrites& rewrites) {
  return recompute_operands(std::move(graph), rows_of_writes, rewrites);
}

NormRule split_rule(const Target& target) {
  const bool has_templates = limits_of(target.device).warp_groups;
  return [has_templates](const Node& norm, const Node& linear) {
    return has_templates && are_on_one_side(norm, linear) && has_some_rows(linear) &&
           is_short_product(linear);
  };
}

// Whether a launch takes longer than what the node computes: each element by itself, and few of them.
bool is_small_map(const Node& node) {
  constexpr int64_t kFewPoints = 1 << 16;
  const Members members = members_of(node);
  const auto is_map = [](const Node* member) {
    return member->op->lower != nullptr && loops::stores_alone(member->op->lower(*member));
  };
  if (!std::ranges::all_of(members.nodes, is_map) || follows_reduction(node)) return false;
  const loops::Kernel kernel = compose_members(members, {}).kernel;
  Dim points = 0;
  for (const loops::Stage& stage : kernel.stages) points = points + product(loops::extents_of(stage.loops));
  points = points * loops::parallel_extent(kernel);
  return loops::stores_alone(kernel) && points.is_constant() && *points.constant() <= kFewPoints;
}

}  // namespace

std::vector<Pass> own_passes(const Target& target) {
  return {
      {.name = "expand_transposed_convolutions",
       .stage = core::Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return expand_transposed_convolutions(std::move(graph), uses_tensor_cores, rewrites);
           },
       .minimum_level = 3,
       .why = "before layouts: the kernel templates of its results request some"},
      {.name = "lift_convolutions",
       .stage = core::Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return lift_convolutions(std::move(graph), uses_tensor_cores, rewrites);
           },
       .minimum_level = 3,
       .why = "behind expand_transposed_convolutions, which makes some; the kernel templates are of images"},
      {.name = "fold_patches",
       .stage = core::Stage::kAdapt,
       .run = [](Graph graph,
                 Rewrites& rewrites) { return fold_patches(std::move(graph), uses_tensor_cores, rewrites); },
       .minimum_level = 3,
       .why = "before pad_channels: patches have more channels, so that fewer are added"},
      {.name = "fold_strides",
       .stage = core::Stage::kAdapt,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return fold_strides(std::move(graph), window_row_multiple, rewrites);
           },
       .minimum_level = 3,
       .why = "behind fold_patches, which needs fewer copies where windows do not overlap"},
      {.name = "pad_channels",
       .stage = core::Stage::kLayout,
       .run = [](Graph graph,
                 Rewrites& rewrites) { return pad_channels(std::move(graph), channel_multiple, rewrites); },
       .minimum_level = 3,
       .why = "before layouts are assigned: what is padded is stored channels last at once"},
      {.name = "defer_cache_writes",
       .stage = core::Stage::kLayout,
       .run =
           [](Graph graph, Rewrites& rewrites) {
             return defer_cache_writes(std::move(graph), has_few_new_rows, rewrites);
           },
       .minimum_level = 3,
       .why = "before layouts are assigned: the template reads rows of any layout whose elements are "
              "neighbours"},
      {.name = "merge_linears",
       .stage = core::Stage::kLayout,
       .run = [](Graph graph,
                 Rewrites& rewrites) { return merge_linears(std::move(graph), uses_tensor_cores, rewrites); },
       .minimum_level = 3,
       .why = "before layouts are assigned: what reads the parts decides how they lie"},
      {.name = "split_norms",
       .stage = core::Stage::kLayout,
       .run = [rule = split_rule(target)](
                  Graph graph, Rewrites& rewrites) { return split_norms(std::move(graph), rule, rewrites); },
       .minimum_level = 3,
       .changes_rounding = true,
       .why = "behind merge_linears: one product reads the moments of a row"},
      {.name = "fold_norms",
       .stage = core::Stage::kLayout,
       .run = [](Graph graph,
                 Rewrites& rewrites) { return fold_norms(std::move(graph), has_few_rows, rewrites); },
       .minimum_level = 3,
       .changes_rounding = true,
       .why = "behind merge_linears: one product has one norm to fold"},
      {.name = "recompute_operands",
       .stage = core::Stage::kFuse,
       .run = recompute_new_rows,
       .minimum_level = 3,
       .why = "before fuse, which takes in only what nobody else reads"},
      {.name = "join_regions",
       .stage = core::Stage::kJoin,
       .run = [](Graph graph,
                 Rewrites& rewrites) { return join_regions(std::move(graph), is_small_map, rewrites); },
       .minimum_level = 3,
       .why = "behind fuse: regions are joined"},
  };
}

}  // namespace ingot::core::cuda
