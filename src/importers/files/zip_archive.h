// SPDX-License-Identifier: Apache-2.0
// Reads the ZIP files that torch writes: stored members only, found through the central directory. Copies
// nothing.
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

// Names as in the archive, without the root folder that all share.
using ZipMembers = std::map<std::string, ZipMember, std::less<>>;

// Checks the whole directory: bounds, no duplicate names, no overlapping members, nothing between the
// directory and the end. UserError INGOT-U500 if it is damaged, UnsupportedError INGOT-N500 for ZIP features
// that torch does not use (compression, encryption, several disks).
ZipMembers read_zip_directory(Bytes file);

// UserError INGOT-U501 for the archives of torch.jit.save, whose code is compressed.
[[noreturn]] void refuse_torchscript();

}  // namespace ingot::core
