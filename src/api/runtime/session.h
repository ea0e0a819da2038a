// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/cache.h"
#include "ingot/build.h"

struct ingot_session {
  explicit ingot_session(size_t cache_bytes) : cache(cache_bytes) {}

  ingot::core::Cache cache;
};

namespace ingot::core::api {

// That of a session; of the process if it is null.
Cache& cache_of(ingot_session* session);

}  // namespace ingot::core::api
