// SPDX-License-Identifier: Apache-2.0
#include "compiler/target_pipeline.h"

#include <algorithm>
#include <utility>

#include "passes/hoist.h"
#include "support/name_pattern.h"

namespace ingot::core {
namespace {

constexpr FusionAnswer kOtherBackend{false, "another backend runs it"};

// What has no operands is computed again wherever it is read.
bool are_together(const EngineBackends& backends, const Node& root, const Node& node) {
  return node.operands.empty() || backends.is_on_host(root) == backends.is_on_host(node);
}

bool counted(const Node& root, const Node& node, const FusionAnswer& answer, NodeReports* reports) {
  if (!answer.yes && reports != nullptr) ++reports->refusals[{root.op->name, node.op->name, answer.reason}];
  return answer.yes;
}

bool is_kept(const Node& node, const Target& target) {
  return std::ranges::any_of(target.keep_precision,
                             [&](const std::string& pattern) { return fits_pattern(pattern, node.name); });
}

void add(NodeReports* reports, const Node& node, const PrecisionChoice& choice) {
  if (reports != nullptr)
    reports->precisions.push_back({node.name, std::string(node.op->name), node.source.to_string(), choice});
}

int64_t quantized_multiple(const Node& node, const EngineBackends& backends, NodeReports* reports) {
  const auto& [backend, target] = backends.of(node);
  const bool kept = is_kept(node, target);
  const int64_t multiple = kept ? 0 : backend->quantized_multiple(node, target);
  if (multiple > 0) {
    add(reports, node, {.operands = DType::kU8, .weight = DType::kI8});
  } else {
    add(reports, node,
        {.reason =
             kept ? "keep_precision names it" : "this target has no fast products of 8-bit integers for it"});
  }
  return multiple;
}

PrecisionChoice choose_precision(const PrecisionSite& site, const EngineBackends& backends,
                                 NodeReports* reports) {
  const auto& [backend, target] = backends.of(site.contraction);
  if (target.precisions.empty()) return {};
  const Node& node = site.contraction;
  PrecisionChoice choice = is_kept(node, target) ? PrecisionChoice{.reason = "keep_precision names it"}
                                                 : backend->precision(site, target);
  add(reports, node, choice);
  return choice;
}

// The backend's own passes, for the nodes that it runs.
void add_passes(const EngineBackends& backends, const BackendTarget& own, std::vector<Pass>& table) {
  for (Pass& pass : own.backend->passes(own.target)) {
    if (backends.are_two())
      pass.only = [backends, of = own.backend](const Node& node) { return backends.of(node).backend == of; };
    table.push_back(std::move(pass));
  }
}

Pass partition_pass(const EngineBackends& backends, NodeReports* reports) {
  const auto run = [backends, reports](Graph graph) {
    ChosenBackends unread;
    choose_sides(graph, backends, invariant_nodes(graph), reports != nullptr ? reports->backends : unread);
    return graph;
  };
  return {.name = "partition",
          .stage = Stage::kAdapt,
          .run = run,
          .why = "behind the device's own rewriting, which makes forms that it runs faster"};
}

std::vector<Pass> own_passes(const EngineBackends& backends, NodeReports* reports) {
  std::vector<Pass> table;
  add_passes(backends, backends.own(), table);
  if (!backends.are_two()) return table;
  table.push_back(partition_pass(backends, reports));
  add_passes(backends, *backends.host(), table);
  return table;
}

}  // namespace

std::vector<Pass> pipeline_for(const EngineBackends& backends, NodeReports* reports) {
  const auto layouts = [backends](const Node& node) {
    const auto& [backend, target] = backends.of(node);
    return backend->layouts(node, target);
  };
  const auto fusion_by = [&backends, reports](auto may_fuse) {
    return [backends, reports, may_fuse](const Node& root, const Node& node) {
      const auto& [backend, target] = backends.of(root);
      return counted(
          root, node,
          are_together(backends, root, node) ? (backend->*may_fuse)(root, node, target) : kOtherBackend,
          reports);
    };
  };
  const auto may_keep_producer = [backends](const Node& root, const Node& node) {
    const auto& [backend, target] = backends.of(root);
    return are_together(backends, root, node) && backend->may_keep_producer(root, node, target);
  };
  const auto precision = [backends, reports](const PrecisionSite& site) {
    return choose_precision(site, backends, reports);
  };
  const auto quantized = [backends, reports](const Node& node) {
    return quantized_multiple(node, backends, reports);
  };
  return pipeline({.layouts = layouts,
                   .fuse = {fusion_by(&Backend::may_fuse_consumer), fusion_by(&Backend::may_fuse_producer),
                            may_keep_producer, fusion_by(&Backend::may_fuse_twin)},
                   .precision = precision,
                   .quantized = quantized},
                  own_passes(backends, reports));
}

std::vector<Pass> pipeline_for(const Backend& backend, const Target& target, NodeReports* reports) {
  return pipeline_for(EngineBackends(backend, target), reports);
}

}  // namespace ingot::core
