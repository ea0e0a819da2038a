// SPDX-License-Identifier: Apache-2.0
// The one place where exceptions become statuses: nothing else in the API catches.
#pragma once

#include "ingot/ingot.h"

namespace ingot::core::api {

// Of the exception that is being handled. std::bad_alloc is a device error; what is no ingot::core::Error is
// an internal one.
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
