// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/backend.h"

#include <set>

#include <fmt/core.h>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/collectives.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/compile/fingerprint.h"
#include "backends/cuda/compile/half_functions.h"
#include "backends/cuda/compile/kernel_text.h"
#include "backends/cuda/compile/library_convolution.h"
#include "backends/cuda/compile/library_kernel.h"
#include "backends/cuda/compile/lower_attention.h"
#include "backends/cuda/compile/lower_contraction.h"
#include "backends/cuda/compile/nvrtc.h"
#include "backends/cuda/compile/passes.h"
#include "backends/cuda/compile/peer_text.h"
#include "backends/cuda/compile/precision.h"
#include "backends/cuda/compile/prelude.h"
#include "backends/cuda/compile/routine_kernels.h"
#include "backends/cuda/compile/speed.h"
#include "backends/cuda/compile/template_step.h"
#include "backends/cuda/images/architecture.h"
#include "backends/cuda/images/library_call.h"
#include "backends/cuda/kernel_abi.h"
#include "backends/steps/fusion_rules.h"
#include "backends/steps/members.h"
#include "loops/overwrite.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/row_moments.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kDefaultDevice = "sm_90a";

bool has_four_bits(const Node& node) {
  const auto is_short = [](const Value* value) {
    return value != nullptr && bit_width(value->type.dtype) == 4;
  };
  return std::ranges::any_of(node.operands, is_short) || std::ranges::any_of(node.results, is_short);
}

Launch launch_of(const LaunchPlan& plan) {
  const Dim rows_a_block = plan.row_bytes * Dim(plan.block / plan.group);
  Launch launch{.sizes = {plan.points, plan.rows_in_shared ? rows_a_block : Dim(0),
                          plan.rows_in_shared ? Dim(0) : plan.row_bytes},
                .constants = {plan.block, plan.group, 1}};
  for (const std::string& symbol : plan.symbols) launch.symbols.push_back(Dim::symbol(symbol));
  return launch;
}

LoweredKernel kernel_of_loops(const loops::Kernel& loops, const KernelOptions& options,
                              const Target& target) {
  KernelText text = write_kernel(loops, kEntry, options);
  const std::string threads = text.plan.row ? fmt::format("{} threads a row, ", text.plan.group) : "";
  LoweredKernel kernel{.tactic = fmt::format("{}next {}", threads, name(options.next_start)),
                       .launch = launch_of(text.plan),
                       .key = text.text,
                       .compile = {}};
  kernel.compile = [text = std::move(text), name = name_with_tactic(loops.name, kernel.tactic),
                    device = target.device] {
    return compile_unit(translation_unit({&text, 1}), name, device);
  };
  return kernel;
}

LoweredStep lower_loops(const Members& members, const SymbolTable& symbols, const Target& target) {
  const RegionKernel region = compose_members(members, symbols);
  LoweredStep step;
  step.name = step_name(members.nodes);
  step.may_overwrite = loops::overwritable_buffers(region.kernel);
  for (const Value* value : region.buffers) add_argument(step, members, value);
  KernelOptions options{.exact_functions = has_exact_functions(target)};
  for (const Value* value : region.buffers)
    options.are_weights.push_back(is_weight(*members.outer.at(value)));
  step.action = kernel_of_loops(region.kernel, options, target);
  if (!target.times_tactics()) return step;
  std::set<std::string> known = {step.kernel()->tactic};
  for (const size_t row : {0, 1}) {
    for (const NextStart start : {NextStart::kAtOnce, NextStart::kAtEnd}) {
      options.row = row;
      options.next_start = start;
      LoweredKernel other = kernel_of_loops(region.kernel, options, target);
      if (known.insert(other.tactic).second) step.others.push_back(std::move(other));
    }
  }
  const Node* contraction = find_contraction(members);
  if (contraction != nullptr && contraction->op == &ops::convolution)
    add_library_convolutions(step, *contraction, epilogue_of(members, *contraction), region.buffers, target);
  return step;
}

LoweredKernel kernel_of_peers(const Node& node, const Target& target) {
  const std::string text = write_peer_kernel(node);
  return {.tactic = {},
          .launch = {},
          .key = text,
          .compile = [text = prelude() + text, name = peer_entry(node), device = target.device] {
            return compile_unit(text, name, device);
          }};
}

// Both kernels read and write the same memory: what follows a sum may be done by the sum's kernel wherever
// that does the sum.
std::optional<LoweredKernel> kernel_of_peers_with_next(const Node& reduction, const Node& next,
                                                       std::span<const Value* const> reduced,
                                                       const SymbolTable& symbols, const Target& target) {
  const Members members = members_of(next);
  if (find_contraction(members) != nullptr) return std::nullopt;
  const RegionKernel region = compose_members(members, symbols);
  std::vector<int> buffers;
  for (size_t i = 0; i < region.buffers.size(); ++i)
    if (std::ranges::find(reduced, members.outer.at(region.buffers[i])) != reduced.end())
      buffers.push_back(static_cast<int>(i));
  const std::optional<PeerNext> both = write_peer_next(
      expand_functions(region.kernel, has_exact_functions(target)), buffers, reduction.operand_type(0).dtype);
  if (!both) return std::nullopt;
  const std::string text = write_peer_kernel(reduction, *both);
  return LoweredKernel{.tactic = {},
                       .launch = {},
                       .key = text,
                       .compile = [text = prelude() + text, name = peer_entry(reduction) + kPeerNext,
                                   device = target.device] { return compile_unit(text, name, device); }};
}

LoweredStep lower_as_routine(const Node& node, const SymbolTable& symbols, const Target& target) {
  if (is_collective_of_nccl(node)) {
    LoweredStep step = lower_device_collective(node);
    if (has_peer_kernel(node)) step.by_peers = kernel_of_peers(node, target);
    return step;
  }
  if (!has_routine_kernel(node)) return lower_routine(node);
  return lower_template(kernel_of_template(write_routine(node, symbols), node, target), members_of(node),
                        node, node.results);
}

bool takes_neighbours(const Node& root) { return !ops::is_attention(*root.op); }
FusionAnswer may_keep_moments(const Node& root) {
  return {root.op == &ops::linear && is_tensor_core_contraction(root),
          "no kernel template keeps its moments"};
}
// Whether cuDNN is expected to compute it: with groups of channels, or windows of three dims, where Ingot has
// plain loops. Of one channel per group its kernels take nothing in.
bool is_for_library(const Node& node, const Target& target) {
  if (!suits_library(node) || library_version(kCudnn, target) == 0) return false;
  const int64_t groups = node.attributes<ops::Convolution>().groups;
  const bool has_groups = groups > 1 && node.operand_type(1).shape[1] != Dim(1);
  return has_groups || (groups == 1 && node.operand_type(0).rank() == 5);
}
// Rows of tables are gathered where an elementwise node reads them: a launch takes longer than their indices.
bool may_gather(const Node& root, const Node& producer) {
  const Value* rows = producer.results[0];
  const bool feeds = std::ranges::find(root.operands, rows) != root.operands.end();
  return feeds && root.op->traits.has(Trait::kElementwise) && !reads_data_dependent_indices(root) &&
         reads_data_dependent_indices(producer) && reads_each_element_once(root, rows);
}
constexpr FusionAnswer kTakesNothing{false, "the kernel template of attention has no epilogue"};

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view generator() const override {
    static const std::string name =
        fmt::format("NVRTC {}, sources {}", shared_nvrtc().version(), kFingerprint);
    return name;
  }
  std::string libraries(const Target& target) const override {
    std::string text;
    for (const Library* library : kLibraries)
      if (const int64_t version = library_version(*library, target); version != 0)
        text += fmt::format(", {} {}", library->files.name, version);
    return text;
  }
  Place place() const override { return {Place::Kind::kDevice, 0}; }

  std::string device(std::string_view words) const override {
    if (words.empty()) return std::string(kDefaultDevice);
    if (parse_architecture(words)) return std::string(words);
    throw UserError(
        "INGOT-U123", fmt::format("'{}' is not a GPU architecture that Ingot builds for", words),
        "give sm_80 or later: sm_80, sm_90, sm_90a; or, for all GPUs from one on, compute_80, compute_90");
  }

  Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const override {
    if (!node.op->routine.empty()) return judge_routine(node, sizes);
    if (node.op->lower == nullptr && !node.op->traits.has(Trait::kFused))
      return {Support::Answer::kNo, fmt::format("there is no kernel for {}", node.op->name)};
    if (has_four_bits(node)) return {Support::Answer::kNo, "there is no kernel for dtypes of four bits"};
    if (is_for_library(node, target)) return {};
    return judge_speed(node, sizes, target);
  }
  double predicted_ns(const Node& node, const SymbolValues& sizes, const Target&) const override {
    return cuda::predicted_ns(node, sizes);
  }

  std::vector<Pass> passes(const Target& target) const override { return own_passes(target); }

  PrecisionChoice precision(const PrecisionSite& site, const Target& target) const override {
    return choose_precision(site, target);
  }

  LayoutRequest layouts(const Node& node, const Target& target) const override {
    if (ops::is_attention(*node.op)) return attention_layouts(node);
    return is_for_library(node, target) ? library_layouts(node) : contraction_layouts(node);
  }

  FusionAnswer may_fuse_consumer(const Node& root, const Node& consumer, const Target&) const override {
    if (consumer.op == &ops::row_moments) return may_keep_moments(root);
    return takes_neighbours(root) ? may_take_consumer(root, consumer, is_ready) : kTakesNothing;
  }
  FusionAnswer may_fuse_producer(const Node& root, const Node& producer, const Target&) const override {
    if (root.op == &ops::normalized_linear && ops::is_row_statistic(producer)) return {};
    if (may_compute_rows(root, producer) || may_gather(root, producer)) return {};
    return takes_neighbours(root) ? may_take_producer(root, producer, is_ready)
                                  : may_compute_rows_of_attention(root, producer);
  }
  FusionAnswer may_fuse_twin(const Node& root, const Node& twin, const Target&) const override {
    return may_be_twins(root, twin);
  }

  bool may_keep_producer(const Node& root, const Node& producer, const Target&) const override {
    return root.op == &ops::normalized_linear && ops::is_row_statistic(producer) &&
           is_tensor_core_contraction(root);
  }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                 const Target& target) const override {
    if (!node.op->routine.empty()) return {lower_as_routine(node, symbols, target)};
    const Members members = members_of(node);
    const Node* contraction = find_contraction(members);
    if (contraction != nullptr && is_tensor_core_attention(*contraction))
      return {lower_attention(members, *contraction, symbols, target)};
    if (contraction != nullptr && is_tensor_core_contraction(*contraction) &&
        knows_statistics(members, *contraction))
      return {lower_contraction(members, *contraction, symbols, target)};
    if (contraction != nullptr && is_depthwise(*contraction)) {
      const RegionKernel epilogue = epilogue_of(members, *contraction);
      const TemplateKernel kernel =
          write_depthwise(*contraction, symbols, epilogue.kernel, has_exact_functions(target));
      return {lower_template(kernel_of_template(kernel, *contraction, target), members, *contraction,
                             std::span(epilogue.buffers).subspan(1))};
    }
    return {lower_loops(members, symbols, target)};
  }

  std::optional<LoweredKernel> lower_with_next(const Node& reduction, const Node& next,
                                               std::span<const Value* const> reduced,
                                               const SymbolTable& symbols,
                                               const Target& target) const override {
    if (target.level < kFusingLevel) return std::nullopt;
    return kernel_of_peers_with_next(reduction, next, reduced, symbols, target);
  }

 private:
  static constexpr int kFusingLevel = 2;
  static bool is_ready(const Node&) { return true; }
};

}  // namespace

const Backend& backend() {
  static const CudaBackend instance;
  return instance;
}

}  // namespace ingot::core::cuda
