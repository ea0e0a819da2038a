// SPDX-License-Identifier: Apache-2.0
#include "ops/region.h"

#include <algorithm>
#include <map>
#include <optional>

#include "loops/compose.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using loops::NumberedKernel;

class Region {
 public:
  void add(const Node& node) {
    NumberedKernel kernel = lowered(node);
    const std::optional<int> root = root_of(node, kernel);
    const bool is_in_place = node.op->traits.has(Trait::kInPlace);
    if (root || is_in_place || !loops::is_elementwise(kernel.kernel)) expand(kernel, number(node.results[0]));
    if (root) kernel = loops::append_consumer(pending_.at(*root), *root, kernel);
    if (is_in_place) keep_target(node, kernel);
    for (const Value* result : node.results) pending_.insert_or_assign(number(result), kernel);
  }

  RegionKernel finish(std::span<const Value* const> outputs, std::string name) {
    NumberedKernel kernel = expanded(outputs[0]);
    for (const Value* output : outputs.subspan(1)) kernel = loops::side_by_side(kernel, expanded(output));
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

  // The value of another than an elementwise kernel that `node` reads.
  std::optional<int> root_of(const Node& node, const NumberedKernel& kernel) const {
    std::optional<int> root;
    for (const int value : kernel.values) {
      const auto producer = pending_.find(value);
      if (producer != pending_.end() && !is_result(node, value) &&
          !loops::is_elementwise(producer->second.kernel))
        root = value;
    }
    return root;
  }

  // Values of elementwise kernels, numbered below the kernel's own, are computed where they are read, the
  // last one first: each once, however many later ones read it.
  void expand(NumberedKernel& kernel, int own) const {
    for (int value = own - 1; value >= 0; --value) {
      const auto producer = pending_.find(value);
      const bool is_read = std::ranges::count(kernel.values, value) > 0;
      if (is_read && producer != pending_.end() && loops::is_elementwise(producer->second.kernel))
        kernel = loops::inline_producer(kernel, value, producer->second);
    }
  }

  NumberedKernel expanded(const Value* output) {
    NumberedKernel kernel = pending_.at(number(output));
    expand(kernel, number(output));
    return kernel;
  }

  int number(const Value* value) {
    const auto [entry, is_new] = numbers_.try_emplace(value, static_cast<int>(values_.size()));
    if (is_new) values_.push_back(value);
    return entry->second;
  }

  std::map<const Value*, int> numbers_;
  std::vector<const Value*> values_;
  // By the value that they store. Elementwise ones read the values of others that are elementwise.
  std::map<int, NumberedKernel> pending_;
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
