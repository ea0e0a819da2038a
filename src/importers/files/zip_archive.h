// SPDX-License-Identifier: Apache-2.0
// Reads the ZIP files that torch writes: stored members only, found through the central directory. Nothing is
// copied.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "support/hash.h"

namespace ingot::core {

struct ZipMember {
  Bytes data;
  uint32_t crc32 = 0;
};

// Names as the archive spells them, all below one root folder that is left out.
using ZipMembers = std::map<std::string, ZipMember, std::less<>>;

// Checks the whole directory: bounds, that no two members share a name or a byte, and that nothing stands
// between the directory and the end. UserError INGOT-U500 if it is damaged, UnsupportedError INGOT-N500 for
// features of ZIP that torch does not use (compression, encryption, several disks).
ZipMembers read_zip_directory(Bytes file);

}  // namespace ingot::core
