// SPDX-License-Identifier: Apache-2.0
// ingot_set_threads, ingot_get_threads, ingot_set_spin.
#include <fmt/core.h>

#include "api/runtime/guard.h"
#include "api/runtime/host_access.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

void require_range(int32_t value, int32_t most, const char* what) {
  if (value < 0 || value > most) {
    throw UserError("INGOT-U002", fmt::format("{} cannot be {}", what, value),
                    fmt::format("give a whole number from 0 to {}", most));
  }
}

}  // namespace

extern "C" {

ingot_status* ingot_set_threads(int32_t threads) {
  return api::guard([&] {
    require_range(threads, api::kMostThreads, "the number of threads");
    api::host().set_threads(threads);
  });
}

int32_t ingot_get_threads(void) {
  int32_t threads = 0;
  ingot_status_free(api::guard([&] { threads = api::host().pool().threads(); }));
  return threads;
}

ingot_status* ingot_set_spin(int32_t microseconds) {
  return api::guard([&] {
    require_range(microseconds, api::kMostSpin, "the time to spin");
    api::host().set_spin(microseconds);
  });
}

}  // extern "C"
