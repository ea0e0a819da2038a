// SPDX-License-Identifier: Apache-2.0
#include "compiler/target_pipeline.h"

namespace ingot::core {
namespace {

bool counted(const Node& root, const Node& node, const FusionAnswer& answer, Refusals* refusals) {
  if (!answer.yes && refusals != nullptr) ++(*refusals)[{root.op->name, node.op->name, answer.reason}];
  return answer.yes;
}

}  // namespace

std::vector<Pass> pipeline_for(const Backend& backend, const Target& target, Refusals* refusals) {
  const auto layouts = [&backend, target](const Node& node) { return backend.layouts(node, target); };
  const auto may_take_consumer = [&backend, target, refusals](const Node& root, const Node& node) {
    return counted(root, node, backend.may_fuse_consumer(root, node, target), refusals);
  };
  const auto may_take_producer = [&backend, target, refusals](const Node& root, const Node& node) {
    return counted(root, node, backend.may_fuse_producer(root, node, target), refusals);
  };
  return pipeline({.layouts = layouts, .fuse = {may_take_consumer, may_take_producer}},
                  backend.passes(target));
}

}  // namespace ingot::core
