// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cache/cache_use.h"
#include "compiler/options.h"
#include "ingot/build.h"

namespace ingot::core::api {

// UserError INGOT-U027 if the server's address is malformed.
void check_server(const CacheOptions& options);

// The stores of one build: those of the process, unless the options name others. What the options leave out
// comes from INGOT_CACHE, INGOT_CACHE_SIGNING_KEY and INGOT_TRUSTED_KEYS. `log` may be empty.
CacheUse cache_use(const CacheOptions& options, const ingot_cache_store* store,
                   const std::function<void(const std::string&)>& log);

}  // namespace ingot::core::api
