// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ingot/ingot.h"

namespace ingot::python {

// ingot_group; sessions that use it keep it.
class Group {
 public:
  // Waits for the other ranks, without the GIL.
  Group(const std::string& address, int rank, int size, const std::string& name, int64_t deadline_ms,
        const ingot_group_listener* listener);
  explicit Group(std::shared_ptr<ingot_group> handle) : handle_(std::move(handle)) {}
  const std::shared_ptr<ingot_group>& handle() const { return handle_; }

 private:
  std::shared_ptr<ingot_group> handle_;
};

}  // namespace ingot::python
