// SPDX-License-Identifier: Apache-2.0
#include "cli/npz.h"

#include <fmt/core.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/read_file.h"
#include "cli/system.h"

namespace ingot::cli {
namespace {

constexpr uint64_t kLargestMember = uint64_t{1} << 40;
constexpr size_t kChunk = size_t{1} << 20;

Array read_member(unzFile zip, const std::string& path) {
  unz_file_info64 info{};
  char name[512] = {};  // the last byte stays zero
  if (unzGetCurrentFileInfo64(zip, &info, name, sizeof(name) - 1, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.uncompressed_size > kLargestMember || unzOpenCurrentFile(zip) != UNZ_OK) {
    throw CommandError(fmt::format("'{}': a member of the archive cannot be read", path));
  }
  std::vector<char> bytes;  // grows as data arrive: the size stored in the file is not trusted
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(before + kChunk);
    const int count = unzReadCurrentFile(zip, bytes.data() + before, kChunk);
    if (count < 0) throw CommandError(fmt::format("'{}': {} is damaged", path, name));
    bytes.resize(before + static_cast<size_t>(count));
    if (count == 0) break;
  }
  if (unzCloseCurrentFile(zip) != UNZ_OK) throw CommandError(fmt::format("'{}': {} is damaged", path, name));
  Array array = parse_npy(bytes, fmt::format("{}' in '{}", name, path));
  array.name = name;
  if (array.name.ends_with(".npy")) array.name.resize(array.name.size() - 4);
  return array;
}

}  // namespace

std::vector<Array> read_npz(const std::string& path) {
  check_readable(path);
  const std::unique_ptr<void, decltype(&unzClose)> zip(open_zip(path), &unzClose);
  if (!zip) throw CommandError(fmt::format("'{}': it is not a .npz file", path));
  std::vector<Array> arrays;
  for (int state = unzGoToFirstFile(zip.get()); state == UNZ_OK; state = unzGoToNextFile(zip.get())) {
    arrays.push_back(read_member(zip.get(), path));
  }
  return arrays;
}

}  // namespace ingot::cli
