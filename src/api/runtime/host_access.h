// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/host.h"

namespace ingot::core::api {

// The one Host of the process, created by the first call from the environment, which is read only then:
// INGOT_THREADS  threads of all runs, the caller included; 0 (the default): what affinity and quota allow
//   INGOT_SPIN     microseconds that idle workers spin before they sleep (default 50)
//   INGOT_LOG      off (the default), warning or info: what goes to stderr until ingot_set_logger is called
//   INGOT_ENGINE_CACHE_DIR   folder of cache entries on disk, "off" for none; default: $XDG_CACHE_HOME/ingot,
//   or
//                            else ~/.cache/ingot
//   INGOT_ENGINE_CACHE_SIZE  bytes of all entries (default 5 GiB)
// and variable_of(option) for the options of builds that are variables too: Host::build_options, which builds
// judge.
// UserError INGOT-U015 if one of the first five is something else.
Host& host();
Host* made_host();  // null before the first call

// The number in an environment variable, `fallback` if it is not set. UserError INGOT-U015 unless it is in
// 0..most.
int64_t read_variable(const char* name, int64_t fallback, int64_t most);

std::string variable_of(std::string_view option);  // "INGOT_STRICT_CACHE" of "strict_cache"

constexpr int kMostThreads = 1024;
constexpr int kMostSpin = 1'000'000;

}  // namespace ingot::core::api
