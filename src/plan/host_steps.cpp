// SPDX-License-Identifier: Apache-2.0
#include "plan/host_steps.h"

#include <map>
#include <set>
#include <utility>

#include "engine/group_uses.h"
#include "plan/copy_step.h"
#include "plan/own_storage.h"

namespace ingot::core {
namespace {

bool is_on_host(const Step& step) { return step.as<RoutineStep>() != nullptr && !is_device_collective(step); }

class HostCopies {
 public:
  HostCopies(Program& program, const SymbolTable& symbols) : program_(program), symbols_(symbols) {
    for (const Step& step : program.steps) {
      if (is_on_host(step)) continue;
      for (const BufferUse& use : step.uses) {
        if (use.buffer != kNoId && use.reads) read_on_device_.insert(root_buffer(program, use.buffer));
      }
    }
  }

  void add() {
    for (Step& step : std::exchange(program_.steps, {})) {
      if (is_on_host(step))
        add_host_step(std::move(step));
      else
        add_device_step(std::move(step));
    }
  }

 private:
  void add_device_step(Step step) {
    for (const BufferUse& use : step.uses) {
      if (use.buffer != kNoId && use.writes) outdate(use.buffer);
    }
    program_.steps.push_back(std::move(step));
  }

  void add_host_step(Step step) {
    const std::vector<BufferUse> uses = step.uses;
    for (const BufferUse& use : uses) {
      if (use.buffer != kNoId && use.reads) bring(use.buffer);
    }
    for (BufferUse& use : step.uses) {
      if (use.buffer != kNoId) use.buffer = copy_of(use.buffer);
    }
    for (SymbolBinding& binding : step.binds) binding.buffer = copy_of(binding.buffer);
    program_.steps.push_back(std::move(step));
    for (const BufferUse& use : uses) {
      if (use.buffer != kNoId && use.writes) return_to_device(use.buffer);
    }
  }

  // The copy on the host has the value from here on.
  void bring(BufferId id) {
    const BufferId on_host = copy_of(id);
    if (current_.insert(id).second) program_.steps.push_back(copy_step(id, on_host));
  }

  void return_to_device(BufferId id) {
    outdate(id);
    current_.insert(id);
    if (is_needed(id)) program_.steps.push_back(copy_step(copy_of(id), id));
  }

  bool is_needed(BufferId id) const {
    const BufferId root = root_buffer(program_, id);
    const Buffer& memory = program_.buffers[root];
    const bool is_own = memory.as<ArenaStorage>() != nullptr || memory.as<DynamicStorage>() != nullptr;
    return !is_own || root != id || read_on_device_.contains(root);
  }

  // Copies of what shares memory with `id` have an old value.
  void outdate(BufferId id) {
    const BufferId root = root_buffer(program_, id);
    std::erase_if(current_, [&](BufferId other) { return root_buffer(program_, other) == root; });
  }

  BufferId copy_of(BufferId id) {
    const auto known = copies_.find(id);
    if (known != copies_.end()) return known->second;
    const Buffer& buffer = program_.buffers[id];
    Buffer on_host{.name = buffer.name, .type = buffer.type, .storage = own_storage(buffer.type, symbols_)};
    program_.buffers.push_back(std::move(on_host));
    return copies_[id] = static_cast<BufferId>(program_.buffers.size() - 1);
  }

  Program& program_;
  const SymbolTable& symbols_;
  std::set<BufferId> read_on_device_;  // roots
  std::set<BufferId> current_;         // whose copy on the host has their value
  std::map<BufferId, BufferId> copies_;
};

}  // namespace

void give_host_copies(Program& program, const SymbolTable& symbols) { HostCopies(program, symbols).add(); }

}  // namespace ingot::core
