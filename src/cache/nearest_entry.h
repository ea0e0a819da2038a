// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cache/disk_store.h"

namespace ingot::core {

// Why a folder has no entry of that key: the first line in which the most similar entry of that kind differs.
// Reads up to the 200 entries that were used last. For messages.
std::string explain_miss(DiskStore& store, const CacheKey& key);

}  // namespace ingot::core
