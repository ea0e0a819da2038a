// SPDX-License-Identifier: Apache-2.0
// The backends of one engine.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"
#include "ir/graph.h"

namespace ingot::core {

// UserError INGOT-U003 lists the available backends.
const Backend& find_backend(std::span<const Backend* const> backends, std::string_view name);

// The CPU's, which compiles for the host of a device; null: it is not one of them.
const Backend* host_backend(std::span<const Backend* const> backends);

// A backend, and the target that it compiles for.
struct BackendTarget {
  const Backend* backend;
  Target target;
};

// The backend of the target, and beside a device the CPU's, which compiles for its host. The sides of nodes
// choose between them.
class EngineBackends {
 public:
  // UserError INGOT-U003 if there is no such backend. The CPU's is used if `target` has a host_device.
  EngineBackends(std::span<const Backend* const> backends, const Target& target);
  // That backend alone.
  EngineBackends(const Backend& backend, const Target& target)
      : device_{&backend, target}, host_{nullptr, {}} {}

  const BackendTarget& own() const { return device_; }  // of the target
  const BackendTarget* host() const { return host_.backend != nullptr ? &host_ : nullptr; }
  bool are_two() const { return host_.backend != nullptr; }
  bool is_on_host(const Node& node) const { return are_two() && node.side == Side::kHost; }
  const BackendTarget& of(const Node& node) const { return is_on_host(node) ? host_ : device_; }
  // The side that `name` is the backend of; kAny: of neither.
  Side side_of(std::string_view name) const;

 private:
  BackendTarget device_, host_;
};

}  // namespace ingot::core
