// SPDX-License-Identifier: Apache-2.0
// The one place where exceptions become statuses: nothing else in the API catches.
#pragma once

#include "ingot/ingot.h"

namespace ingot::core {
class Error;
}

namespace ingot::core::api {

// Throws std::bad_alloc.
ingot_status* make_status(const Error& error);

// Of the exception that is being handled. std::bad_alloc is a device error, whose status takes no memory;
// what is no ingot::core::Error is an internal one.
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
