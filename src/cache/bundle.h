// SPDX-License-Identifier: Apache-2.0
// Entries of a folder in one file, for other machines. Little-endian: "INGOTBUN", u64 format version, then
// for each entry u64 length and its sealed bytes (entry.h).
#pragma once

#include "cache/disk_store.h"
#include "support/file.h"

namespace ingot::core {

struct BundleTotals {
  size_t entries = 0;
  uint64_t bytes = 0;  // of entries
};

// Writes all entries that are whole, the least recently used first.
BundleTotals write_bundle(DiskStore& store, const Sink& sink);

// Adds all entries of a bundle, after all of them were checked. UserError INGOT-U024 if it is not a bundle,
// or damaged: then nothing was added.
BundleTotals add_bundle(DiskStore& store, Bytes bundle);

}  // namespace ingot::core
