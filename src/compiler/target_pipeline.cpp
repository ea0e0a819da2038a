// SPDX-License-Identifier: Apache-2.0
#include "compiler/target_pipeline.h"

namespace ingot::core {

std::vector<Pass> pipeline_for(const Backend& backend, const Target& target) {
  const auto layouts = [&backend, target](const Node& node) { return backend.layouts(node, target); };
  const auto may_take_consumer = [&backend, target](const Node& root, const Node& node) {
    return backend.may_fuse_consumer(root, node, target);
  };
  const auto may_take_producer = [&backend, target](const Node& root, const Node& node) {
    return backend.may_fuse_producer(root, node, target);
  };
  return pipeline({.layouts = layouts, .fuse = {may_take_consumer, may_take_producer}},
                  backend.passes(target));
}

}  // namespace ingot::core
