// SPDX-License-Identifier: Apache-2.0
#include "compiler/target_pipeline.h"

#include <fnmatch.h>

#include <algorithm>

namespace ingot::core {
namespace {

bool counted(const Node& root, const Node& node, const FusionAnswer& answer, NodeReports* reports) {
  if (!answer.yes && reports != nullptr) ++reports->refusals[{root.op->name, node.op->name, answer.reason}];
  return answer.yes;
}

bool is_kept(const Node& node, const Target& target) {
  return std::ranges::any_of(target.keep_precision, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), node.name.c_str(), 0) == 0;
  });
}

void add(NodeReports* reports, const Node& node, const PrecisionChoice& choice) {
  if (reports != nullptr)
    reports->precisions.push_back({node.name, std::string(node.op->name), node.source.to_string(), choice});
}

int64_t quantized_multiple(const Node& node, const Backend& backend, const Target& target,
                           NodeReports* reports) {
  const bool kept = is_kept(node, target);
  const int64_t multiple = kept ? 0 : backend.quantized_multiple(node, target);
  if (multiple > 0) {
    add(reports, node, {.operands = DType::kU8, .weight = DType::kI8});
  } else {
    add(reports, node,
        {.reason =
             kept ? "keep_precision names it" : "this target has no fast products of 8-bit integers for it"});
  }
  return multiple;
}

PrecisionChoice choose_precision(const PrecisionSite& site, const Backend& backend, const Target& target,
                                 NodeReports* reports) {
  if (target.precisions.empty()) return {};
  const Node& node = site.contraction;
  PrecisionChoice choice = is_kept(node, target) ? PrecisionChoice{.reason = "keep_precision names it"}
                                                 : backend.precision(site, target);
  add(reports, node, choice);
  return choice;
}

}  // namespace

std::vector<Pass> pipeline_for(const Backend& backend, const Target& target, NodeReports* reports) {
  const auto layouts = [&backend, target](const Node& node) { return backend.layouts(node, target); };
  const auto may_take_consumer = [&backend, target, reports](const Node& root, const Node& node) {
    return counted(root, node, backend.may_fuse_consumer(root, node, target), reports);
  };
  const auto may_take_producer = [&backend, target, reports](const Node& root, const Node& node) {
    return counted(root, node, backend.may_fuse_producer(root, node, target), reports);
  };
  const auto precision = [&backend, target, reports](const PrecisionSite& site) {
    return choose_precision(site, backend, target, reports);
  };
  const auto quantized = [&backend, target, reports](const Node& node) {
    return quantized_multiple(node, backend, target, reports);
  };
  return pipeline({.layouts = layouts,
                   .fuse = {may_take_consumer, may_take_producer},
                   .precision = precision,
                   .quantized = quantized},
                  backend.passes(target));
}

}  // namespace ingot::core
