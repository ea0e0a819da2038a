// SPDX-License-Identifier: Apache-2.0
#include "ops/region.h"

#include <algorithm>
#include <map>

#include "loops/compose.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using loops::NumberedKernel;

class Region {
 public:
  void add(const Node& node) {
    NumberedKernel kernel = lowered(node);
    const NumberedKernel* root = nullptr;
    int root_value = -1;
    for (const int value : std::vector<int>(kernel.values)) {
      const auto producer = pending_.find(value);
      if (producer == pending_.end() || is_result(node, value)) continue;
      if (loops::is_elementwise(producer->second.kernel)) {
        kernel = loops::inline_producer(kernel, value, producer->second);
      } else {
        root = &producer->second;
        root_value = value;
      }
    }
    if (root != nullptr) kernel = loops::append_consumer(*root, root_value, kernel);
    if (node.op->traits.has(Trait::kInPlace)) keep_target(node, kernel);
    for (const Value* result : node.results) pending_.insert_or_assign(number(result), kernel);
  }

  RegionKernel finish(std::span<const Value* const> outputs, std::string name) {
    NumberedKernel kernel = pending_.at(number(outputs[0]));
    for (const Value* output : outputs.subspan(1))
      kernel = loops::side_by_side(kernel, pending_.at(number(output)));
    RegionKernel result{std::move(kernel.kernel), {}};
    for (const int value : kernel.values) result.buffers.push_back(values_[value]);
    for (size_t i = 0; i < result.buffers.size(); ++i)
      result.kernel.buffers[i].type = result.buffers[i]->type;
    result.kernel.name = std::move(name);
    return result;
  }

 private:
  void keep_target(const Node& node, NumberedKernel& kernel) {
    const int target = number(node.operands[0]);
    if (std::ranges::count(kernel.values, target) > 0) return;
    kernel.values.push_back(target);
    kernel.kernel.buffers.push_back({"target", node.operand_type(0)});
  }

  NumberedKernel lowered(const Node& node) {
    invariant(node.op->lower != nullptr, "a region contains a node without a lowering");
    NumberedKernel kernel{node.op->lower(node), {}};
    for (const Value* operand : node.operands) {
      if (operand != nullptr) kernel.values.push_back(number(operand));
    }
    for (const Value* result : node.results) kernel.values.push_back(number(result));
    invariant(kernel.values.size() == kernel.kernel.buffers.size(),
              "the buffers of a lowering do not match its node");
    return merge_repeated(std::move(kernel));
  }

  // An operand that is used twice (x * x) is one buffer.
  static NumberedKernel merge_repeated(NumberedKernel kernel);

  bool is_result(const Node& node, int value) const {
    return std::ranges::find(node.results, values_[value]) != node.results.end();
  }

  int number(const Value* value) {
    const auto [entry, is_new] = numbers_.try_emplace(value, static_cast<int>(values_.size()));
    if (is_new) values_.push_back(value);
    return entry->second;
  }

  std::map<const Value*, int> numbers_;
  std::vector<const Value*> values_;
  std::map<int, NumberedKernel> pending_;  // by the value that it stores
};

NumberedKernel Region::merge_repeated(NumberedKernel kernel) {
  std::vector<int> first(kernel.values.size());
  bool repeated = false;
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<int>(std::ranges::find(kernel.values, kernel.values[i]) - kernel.values.begin());
    repeated |= first[i] != static_cast<int>(i);
  }
  return repeated ? loops::renumber_buffers(kernel, first) : kernel;
}

std::string region_name(std::span<const Node* const> nodes) {
  std::string name;
  for (const Node* node : nodes) name += (name.empty() ? "" : "_") + std::string(node->op->name);
  return name;
}

}  // namespace

RegionKernel compose_region(std::span<const Node* const> nodes, std::span<const Value* const> outputs) {
  invariant(!outputs.empty(), "a region stores nothing");
  Region region;
  for (const Node* node : nodes) region.add(*node);
  return region.finish(outputs, region_name(nodes));
}

RegionKernel move_buffer_first(RegionKernel region, int position) {
  std::vector<int> numbers(region.buffers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int index = static_cast<int>(i);
    numbers[i] = index == position ? 0 : index < position ? index + 1 : index;
  }
  loops::use_buffers(region.kernel, numbers);
  std::rotate(region.buffers.begin(), region.buffers.begin() + position,
              region.buffers.begin() + position + 1);
  auto& buffers = region.kernel.buffers;
  std::rotate(buffers.begin(), buffers.begin() + position, buffers.begin() + position + 1);
  return region;
}

}  // namespace ingot::core
