// SPDX-License-Identifier: Apache-2.0
// What the process has: threads, GPUs, a logger.
#include <fmt/core.h>

#include "api/runtime/checks.h"
#include "api/runtime/executors.h"
#include "api/runtime/guard.h"
#include "api/runtime/host_access.h"
#include "support/error.h"

using namespace ingot::core;

extern "C" {

ingot_status* ingot_set_threads(int32_t threads) {
  return api::guard([&] {
    api::require_range(threads, api::kMostThreads, "the number of threads");
    api::host().set_threads(threads);
  });
}

int32_t ingot_get_threads(void) {
  int32_t threads = 0;
  ingot_status_free(api::guard([&] { threads = api::host().pool().threads(); }));
  return threads;
}

int32_t ingot_gpu_count(void) {
  int32_t count = 0;
  ingot_status_free(api::guard([&] {
    for (const Executor* executor : api::executors()) count += executor->device_count();
  }));
  return count;
}

ingot_status* ingot_set_spin(int32_t microseconds) {
  return api::guard([&] {
    api::require_range(microseconds, api::kMostSpin, "the time to spin");
    api::host().set_spin(microseconds);
  });
}

ingot_status* ingot_set_logger(ingot_log log, void* user, int32_t level) {
  return api::guard([&] {
    if (level < INGOT_LOG_OFF || level > INGOT_LOG_INFO)
      throw UserError("INGOT-U016", fmt::format("{} is not an ingot_log_level", level));
    api::host().log().set({log, user, static_cast<LogLevel>(level)});
  });
}

}  // extern "C"
