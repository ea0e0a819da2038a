// SPDX-License-Identifier: Apache-2.0
#include "tests/importers/pt2_archives.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "importers/files/crc32.h"
#include "importers/files/zip_archive.h"
#include "support/error.h"

namespace ingot::core::pt2::test {
namespace {

void append(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

// Fields shared by the local header and the directory entry.
std::string common_fields(const std::string& name, const std::string& data, size_t extra) {
  std::string fields;
  append(fields, 0, 2 + 2 + 4);  // flags, stored, time
  append(fields, crc32(as_bytes(data)), 4);
  append(fields, data.size(), 4);
  append(fields, data.size(), 4);
  append(fields, name.size(), 2);
  append(fields, extra, 2);
  return fields;
}

}  // namespace

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(INGOT_SOURCE_DIR "/tests/data/pt2"))
    names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

std::string golden_path(const std::string& name) {
  return INGOT_SOURCE_DIR "/tests/data/pt2/" + name + ".pt2";
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Members golden_members(const std::string& name) {
  const std::string bytes = read_bytes(golden_path(name));
  Members members;
  for (const auto& [member, content] : read_zip_directory(as_bytes(bytes)))
    members[member].assign(reinterpret_cast<const char*>(content.data.data()), content.data.size());
  return members;
}

std::string write_zip(const Members& members) {
  std::string zip, directory;
  for (const auto& [member, data] : members) {
    const std::string name = "archive/" + member;
    const size_t offset = zip.size();
    const size_t padding = 4 + (64 - (zip.size() + 30 + name.size() + 4) % 64) % 64;
    zip += "PK\3\4" + std::string("\x14\0", 2) + common_fields(name, data, padding) + name + "FB";
    append(zip, padding - 4, 2);
    zip += std::string(padding - 4, 'Z') + data;
    directory += "PK\1\2" + std::string("\x14\0\x14\0", 4) + common_fields(name, data, 0);
    append(directory, 0, 2 + 2);
    append(directory, 0, 2 + 4);
    append(directory, offset, 4);
    directory += name;
  }
  std::string end = "PK\5\6";
  append(end, 0, 4);
  append(end, members.size(), 2);
  append(end, members.size(), 2);
  append(end, directory.size(), 4);
  append(end, zip.size(), 4);
  append(end, 0, 2);
  return zip + directory + end;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  if (place == std::string::npos) throw std::runtime_error("there is no " + from);
  text.replace(place, from.size(), to);
}

aten::Program read(const std::string& archive, bool verify_checksums) {
  const auto owner = std::make_shared<std::string>(archive);
  return read_pt2(as_bytes(*owner), owner, {.verify_checksums = verify_checksums});
}

std::string error_of(const std::string& archive) {
  try {
    read(archive);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace ingot::core::pt2::test
