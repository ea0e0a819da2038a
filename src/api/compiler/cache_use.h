// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cache/cache_use.h"
#include "compiler/options.h"
#include "ingot/build.h"

namespace ingot::core::api {

// Adds the options that environment variables set and `rows` leaves out (Host::build_options). UserError
// INGOT-U015 if the value is not one of the option's.
void add_variables(std::map<std::string, std::string>& rows);

// UserError INGOT-U027 if the server's address is malformed.
void check_server(const CacheOptions& options);

// The stores of one build: those of the process, unless the options name others. `log` may be empty.
CacheUse cache_use(const CacheOptions& options, const ingot_cache_store* store,
                   const std::function<void(const std::string&)>& log);

}  // namespace ingot::core::api
