// SPDX-License-Identifier: Apache-2.0
#include "compiler/repeats.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

namespace ingot::core {
namespace {

// A step's module: the first one that is known among the nodes that it computes.
std::string_view module_of(const Node& node) {
  if (!node.source.module_path.empty()) return node.source.module_path;
  for (const auto& body : node.graphs) {
    for (const auto& inner : body->nodes()) {
      if (!inner->source.module_path.empty()) return inner->source.module_path;
    }
  }
  return {};
}

bool is_position(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

// "encoder.layer" and "3" of "encoder.layer.3.attention": its outermost list and the position there.
std::pair<std::string_view, std::string_view> list_and_position(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (is_position(part)) return {path.substr(0, begin == 0 ? 0 : begin - 1), part};
    begin = end + 1;
  }
  return {};
}

std::string text_of(const LoweredStep& step) {
  const LoweredKernel* kernel = step.kernel();
  const auto* routine = std::get_if<RoutineStep>(&step.action);
  return kernel != nullptr    ? fmt::format("{}", kernel->launch.image)
         : routine != nullptr ? routine->routine
                              : step.name;
}

}  // namespace

std::vector<Repeats> find_repeats(std::span<const NodeStep> steps) {
  std::map<std::string_view, std::map<std::string_view, std::string>> lists;  // path, position, kernels
  for (const NodeStep& step : steps) {
    const auto [path, position] = list_and_position(module_of(*step.node));
    if (!position.empty()) lists[path][position] += text_of(step.step) + " ";
  }
  std::vector<Repeats> repeats;
  for (const auto& [path, layers] : lists) {
    std::set<std::string_view> distinct;
    for (const auto& [position, kernels] : layers) distinct.insert(kernels);
    if (layers.size() > 1) repeats.push_back({std::string(path), layers.size(), distinct.size()});
  }
  return repeats;
}

}  // namespace ingot::core
