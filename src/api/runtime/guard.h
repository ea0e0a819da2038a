// SPDX-License-Identifier: Apache-2.0
// The only place where exceptions become statuses: nothing else in the API catches.
#pragma once

#include "ingot/ingot.h"

namespace ingot::core {
class Error;
}

namespace ingot::core::api {

// Throws std::bad_alloc.
ingot_status* make_status(const Error& error);

// The status of the exception being handled. std::bad_alloc is a device error, whose status needs no memory;
// anything but ingot::core::Error is an internal error.
ingot_status* current_exception_status() noexcept;

// Runs `function`; NULL if it returned.
template <typename Function>
ingot_status* guard(Function&& function) noexcept {
  try {
    function();
    return nullptr;
  } catch (...) {
    return current_exception_status();
  }
}

}  // namespace ingot::core::api
