// SPDX-License-Identifier: Apache-2.0
#include "plan/host_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "engine/group_uses.h"
#include "plan/copy_step.h"
#include "plan/own_storage.h"

namespace ingot::core {
namespace {

class HostCopies {
 public:
  HostCopies(Program& program, const SymbolTable& symbols, std::string_view device)
      : program_(program), symbols_(symbols), device_(device) {}

  void add() {
    move_to_host();
    find_read_on_device();
    std::vector<Step> steps = std::exchange(program_.steps, {});
    for (size_t i = 0; i < steps.size();) {
      const size_t end = end_of_host_steps(steps, i);
      if (end == i) add_device_step(std::move(steps[i++]));
      bring_operands(std::span(steps).subspan(i, std::max(end, i) - i));
      for (; i < end; ++i) add_host_step(std::move(steps[i]));
    }
    give_back([&](BufferId id) { return !is_own(root_buffer(program_, id)); });
  }

 private:
  bool is_on_host(const Step& step) const {
    if (const auto* kernel = step.as<KernelStep>()) return kernel->backend != device_;
    return step.as<RoutineStep>() != nullptr && !is_device_collective(step);
  }

  bool is_own(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    return buffer.as<ArenaStorage>() != nullptr || buffer.as<DynamicStorage>() != nullptr;
  }

  template <typename Visit>
  void for_roots(const Step& step, const Visit& visit) const {
    for (const BufferUse& use : step.uses) {
      if (use.buffer != kNoId) visit(root_buffer(program_, use.buffer));
    }
  }

  // What copies lie between counts for neither: they copy from one place to another as well.
  void move_to_host() {
    std::set<BufferId> on_host, on_device;
    for (const Step& step : program_.steps) {
      if (step.as<CopyStep>() != nullptr) continue;
      auto& users = is_on_host(step) ? on_host : on_device;
      for_roots(step, [&](BufferId root) { users.insert(root); });
    }
    for (BufferId id = 0; id < program_.buffers.size(); ++id) {
      const BufferId root = root_buffer(program_, id);
      const bool may_move = is_own(root) || program_.buffers[root].weight().has_value();
      if (may_move && on_host.contains(root) && !on_device.contains(root)) program_.buffers[id].place = {};
    }
  }

  void find_read_on_device() {
    for (const Step& step : program_.steps) {
      if (is_on_host(step)) continue;
      for (const BufferUse& use : step.uses) {
        if (use.buffer != kNoId && use.reads) read_on_device_.insert(root_buffer(program_, use.buffer));
      }
    }
  }

  // Steps of the host from `begin` on, up to one that binds a size: memory may depend on it.
  size_t end_of_host_steps(const std::vector<Step>& steps, size_t begin) const {
    size_t end = begin;
    while (end < steps.size() && is_on_host(steps[end])) {
      if (!steps[end++].binds.empty()) break;
    }
    return end;
  }

  // What consecutive steps of the host read of others is copied before the first: they run without a wait
  // between them.
  void bring_operands(std::span<const Step> steps) {
    std::set<BufferId> written;
    for (const Step& step : steps) {
      for (const BufferUse& use : step.uses) {
        if (use.buffer != kNoId && use.reads && !written.contains(root_buffer(program_, use.buffer)))
          bring(use.buffer);
      }
      for (const BufferUse& use : step.uses) {
        if (use.buffer != kNoId && use.writes) written.insert(root_buffer(program_, use.buffer));
      }
    }
  }

  void add_device_step(Step step) {
    give_back([&](BufferId id) {
      const BufferId root = root_buffer(program_, id);
      return read_on_device_.contains(root) || std::ranges::any_of(step.uses, [&](const BufferUse& use) {
               return use.buffer != kNoId && root_buffer(program_, use.buffer) == root;
             });
    });
    for (const BufferUse& use : step.uses) {
      if (use.buffer != kNoId && use.writes) outdate(use.buffer);
    }
    program_.steps.push_back(std::move(step));
  }

  void add_host_step(Step step) {
    const std::vector<BufferUse> uses = step.uses;
    for (const BufferUse& use : uses) {
      if (use.buffer == kNoId) continue;
      if (use.reads) bring(use.buffer);
      if (use.writes) give_back_others(use.buffer);
    }
    for (BufferUse& use : step.uses) {
      if (use.buffer != kNoId) use.buffer = copy_of(use.buffer);
    }
    for (SymbolBinding& binding : step.binds) binding.buffer = copy_of(binding.buffer);
    program_.steps.push_back(std::move(step));
    for (const BufferUse& use : uses) {
      if (use.buffer == kNoId || !use.writes || is_there(use.buffer)) continue;
      outdate(use.buffer);
      current_.insert(use.buffer);
      pending_.insert(use.buffer);
    }
  }

  // The copy on the host has the value from here on.
  void bring(BufferId id) {
    if (is_there(id) || current_.contains(id)) return;
    const BufferId on_host = copy_of(id);
    if (program_.buffers[root_buffer(program_, id)].weight()) return;
    give_back_others(id);
    current_.insert(id);
    program_.steps.push_back(copy_step(id, on_host));
  }

  // To the device, of what was written on the host.
  template <typename Condition>
  void give_back(const Condition& is_needed) {
    std::erase_if(pending_, [&](BufferId id) {
      if (!is_needed(id)) return false;
      program_.steps.push_back(copy_step(copy_of(id), id));
      return true;
    });
  }

  void give_back_others(BufferId id) {
    const BufferId root = root_buffer(program_, id);
    give_back([&](BufferId other) { return other != id && root_buffer(program_, other) == root; });
  }

  // Copies of what shares memory with `id` have an old value.
  void outdate(BufferId id) {
    const BufferId root = root_buffer(program_, id);
    std::erase_if(current_, [&](BufferId other) { return root_buffer(program_, other) == root; });
  }

  bool is_there(BufferId id) const { return program_.buffers[id].place == Place{}; }

  // Weights are in both places, their views too.
  Storage storage_of_copy(const Buffer& buffer) {
    if (buffer.weight()) return buffer.storage;
    const auto* alias = buffer.as<AliasStorage>();
    if (alias == nullptr || !program_.buffers[root_buffer(program_, alias->of)].weight())
      return own_storage(buffer.type, symbols_);
    const AliasStorage own = *alias;  // `buffer` may move
    return AliasStorage{.of = copy_of(own.of), .offset = own.offset};
  }

  BufferId copy_of(BufferId id) {
    if (is_there(id)) return id;
    const auto known = copies_.find(id);
    if (known != copies_.end()) return known->second;
    const Buffer buffer = program_.buffers[id];
    Buffer on_host{.name = buffer.name, .type = buffer.type, .storage = storage_of_copy(buffer)};
    program_.buffers.push_back(std::move(on_host));
    return copies_[id] = static_cast<BufferId>(program_.buffers.size() - 1);
  }

  Program& program_;
  const SymbolTable& symbols_;
  const std::string_view device_;
  std::set<BufferId> read_on_device_;  // roots
  std::set<BufferId> current_;         // whose copy on the host has their value
  std::set<BufferId> pending_;         // ... which the device does not have yet
  std::map<BufferId, BufferId> copies_;
};

}  // namespace

void give_host_copies(Program& program, const SymbolTable& symbols, std::string_view device) {
  HostCopies(program, symbols, device).add();
}

}  // namespace ingot::core
