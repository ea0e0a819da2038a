// SPDX-License-Identifier: Apache-2.0
#include "cache_session.h"

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "gil.h"

namespace ingot::python {
namespace {

std::string cache_stats(const CacheSession* session) {
  ingot_text* text = nullptr;
  check(ingot_cache_stats(handle_of(session), &text));
  return take_text(text);
}

}  // namespace

CacheSession::CacheSession(uint64_t cache_bytes) {
  const ingot_session_options options{.struct_size = sizeof(options), .cache_bytes = cache_bytes};
  ingot_session* session = nullptr;
  check(ingot_session_create(&options, &session));
  handle_.reset(session);
}

// `session` is None for the cache of the process.
void bind_cache_session(nb::module_& module) {
  nb::class_<CacheSession>(module, "CacheSession").def(nb::init<uint64_t>(), nb::arg("cache_bytes"));
  module.def("cache_wait", &ingot_cache_wait, nb::arg("milliseconds"), nb::call_guard<ReleasedGil>());
  module.def("cache_stats", &cache_stats, nb::arg("session").none());
  module.def(
      "cache_clear", [](CacheSession* session) { check(ingot_cache_clear(handle_of(session))); },
      nb::arg("session").none());
}

}  // namespace ingot::python
