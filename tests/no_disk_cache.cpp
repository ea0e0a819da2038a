// SPDX-License-Identifier: Apache-2.0
// Part of every test program: builds in tests neither find what the user's own builds kept, nor keep anything
// there.
#include <cstdlib>

namespace {

__attribute__((constructor)) void use_no_disk_cache() { ::setenv("INGOT_ENGINE_CACHE_DIR", "off", 0); }

}  // namespace
