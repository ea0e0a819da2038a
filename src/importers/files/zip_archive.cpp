// SPDX-License-Identifier: Apache-2.0
#include "importers/files/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace ingot::core {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr uint32_t kEndOfDirectory64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr uint16_t kExtra64 = 1;
constexpr uint64_t kIn64 = 0xffffffff;  // the value is in the ZIP64 record
constexpr uint16_t kEncrypted = 1;
constexpr uint64_t kLocalHeaderSize = 30, kEntrySize = 46, kEndSize = 22, kEnd64Size = 56,
                   kLocator64Size = 20;

[[noreturn]] void damaged(std::string_view what) {
  throw UserError("INGOT-U500", fmt::format("the archive is damaged or truncated: {}", what),
                  "copy the file again, or save the program again with torch.export.save");
}
[[noreturn]] void foreign(std::string message) {
  throw UnsupportedError("INGOT-N500", std::move(message),
                         "use the file as torch.export.save wrote it; repacked archives are not supported");
}

[[noreturn]] void no_export(std::string_view why) {
  throw UserError("INGOT-U501", fmt::format("this is not a torch.export archive: {}", why),
                  "save the program with torch.export.save(torch.export.export(model, args), path)");
}

[[noreturn]] void refuse_other_file(Bytes file) {
  constexpr std::string_view kEngine = "INGOTENG";
  if (file.size() < kEngine.size() || std::memcmp(file.data(), kEngine.data(), kEngine.size()) != 0)
    no_export("it is not a ZIP file");
  throw UserError("INGOT-U501", "this is an engine, which was built already",
                  "pass the model that it was built of, or run the engine: `ingot run`");
}

}  // namespace

void refuse_torchscript() {
  throw UserError(
      "INGOT-U501", "this is a TorchScript archive",
      "compile it from Python with ingot.ts.compile(path, inputs=[...]), or export the model with "
      "torch.export.export and save that");
}

namespace {

// A little-endian reader with checked accesses.
class Cursor {
 public:
  Cursor(Bytes data, uint64_t offset) : data_(data), offset_(offset) {
    if (offset > data.size()) damaged("an offset points past the end");
  }
  uint64_t offset() const { return offset_; }
  uint64_t rest() const { return data_.size() - offset_; }
  Bytes take(uint64_t size) {
    if (size > rest()) damaged("a record is cut off");
    const Bytes taken = data_.subspan(offset_, size);
    offset_ += size;
    return taken;
  }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    int shift = 0;
    for (const std::byte byte : take(static_cast<uint64_t>(bytes))) {
      value |= std::to_integer<uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }

 private:
  Bytes data_;
  uint64_t offset_;
};

struct Directory {
  uint64_t entries;
  uint64_t size;
  uint64_t offset;
  uint64_t end;  // start of the next record
};

// The ZIP64 record that the locator before `end_offset` names; nullopt if there is no locator.
std::optional<Directory> read_end64(Bytes file, uint64_t end_offset) {
  if (end_offset < kLocator64Size) return std::nullopt;
  const uint64_t locator_offset = end_offset - kLocator64Size;
  Cursor locator(file, locator_offset);
  if (locator.u32() != kLocator64) return std::nullopt;
  if (locator.u32() != 0) foreign("the archive spans several disks");
  const uint64_t offset = locator.u64();
  Cursor cursor(file, offset);
  if (cursor.u32() != kEndOfDirectory64) damaged("the ZIP64 end of the directory is missing");
  const uint64_t rest = cursor.u64();
  if (rest != kEnd64Size - 12 || offset + kEnd64Size != locator_offset)
    damaged("the ZIP64 end of the directory has a wrong size");
  cursor.take(4);  // versions
  if (cursor.u32() != 0 || cursor.u32() != 0) foreign("the archive spans several disks");
  const uint64_t here = cursor.u64();
  const Directory directory{
      .entries = cursor.u64(), .size = cursor.u64(), .offset = cursor.u64(), .end = offset};
  if (here != directory.entries) foreign("the archive spans several disks");
  return directory;
}

// torch writes no comment, so the end record is the last of the file.
Directory read_end(Bytes file) {
  if (file.size() < kEndSize || Cursor(file, 0).u32() != kLocalHeader) refuse_other_file(file);
  const uint64_t end_offset = file.size() - kEndSize;
  Cursor cursor(file, end_offset);
  if (cursor.u32() != kEndOfDirectory) damaged("the end of the ZIP directory is missing");
  cursor.take(6);  // disks and their entries
  const Directory small{
      .entries = cursor.u16(), .size = cursor.u32(), .offset = cursor.u32(), .end = end_offset};
  if (cursor.u16() != 0) foreign("the archive has a comment");
  const Directory directory = read_end64(file, end_offset).value_or(small);
  const auto agree = [](uint64_t narrow, uint64_t wide, uint64_t limit) {
    return narrow == wide || narrow == limit;
  };
  if (!agree(small.entries, directory.entries, 0xffff) || !agree(small.size, directory.size, kIn64) ||
      !agree(small.offset, directory.offset, kIn64))
    damaged("the two ends of the directory disagree");
  if (directory.offset > directory.end || directory.size != directory.end - directory.offset)
    damaged("the directory does not end at its end record");
  return directory;
}

struct Entry {
  std::string name;
  uint32_t crc32;
  uint64_t size;
  uint64_t header_offset;
};

// Replaces the values that 32 bits could not hold by those of the ZIP64 extra field.
void read_extra(Bytes extra, uint64_t& size, uint64_t& packed_size, uint64_t& header_offset) {
  Cursor cursor(extra, 0);
  while (cursor.rest() >= 4) {
    const uint16_t id = cursor.u16();
    const uint16_t length = cursor.u16();
    Cursor field(cursor.take(length), 0);
    if (id != kExtra64) continue;
    for (uint64_t* value : {&size, &packed_size, &header_offset})
      if (*value == kIn64) *value = field.u64();
    return;
  }
  if (size == kIn64 || packed_size == kIn64 || header_offset == kIn64) damaged("a ZIP64 field is missing");
}

Entry read_entry(Cursor& cursor) {
  if (cursor.u32() != kDirectoryEntry) damaged("a directory entry has a wrong signature");
  cursor.take(4);  // versions
  const uint16_t flags = cursor.u16();
  const uint16_t method = cursor.u16();
  cursor.take(4);  // time
  Entry entry;
  entry.crc32 = cursor.u32();
  uint64_t packed_size = cursor.u32();
  entry.size = cursor.u32();
  const uint16_t name_length = cursor.u16(), extra_length = cursor.u16(), comment_length = cursor.u16();
  const uint16_t disk = cursor.u16();
  cursor.take(6);  // attributes
  entry.header_offset = cursor.u32();
  const Bytes name = cursor.take(name_length);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  read_extra(cursor.take(extra_length), entry.size, packed_size, entry.header_offset);
  cursor.take(comment_length);
  if (method != 0 && entry.name.find("/code/__torch__") != std::string::npos) refuse_torchscript();
  if (method != 0) foreign(fmt::format("member '{}' is compressed", entry.name));
  if (flags & kEncrypted) foreign(fmt::format("member '{}' is encrypted", entry.name));
  if (disk != 0) foreign("the archive spans several disks");
  if (packed_size != entry.size) damaged(fmt::format("member '{}' is stored, but has two sizes", entry.name));
  return entry;
}

struct Extent {
  uint64_t begin, end;  // local header and payload, as offsets in the file
};

// The payload of an entry. Sizes in the local header may be zero (a data descriptor follows): those in the
// directory count.
Bytes find_payload(Bytes before_directory, const Entry& entry, std::vector<Extent>& extents) {
  Cursor cursor(before_directory, entry.header_offset);
  if (cursor.u32() != kLocalHeader) damaged(fmt::format("member '{}' has no header", entry.name));
  cursor.take(kLocalHeaderSize - 8);
  const uint16_t name_length = cursor.u16(), extra_length = cursor.u16();
  const Bytes name = cursor.take(name_length);
  if (!std::ranges::equal(name, as_bytes(entry.name)))
    damaged(fmt::format("member '{}' has another name in its header", entry.name));
  cursor.take(extra_length);
  const Bytes payload = cursor.take(entry.size);
  extents.push_back({entry.header_offset, cursor.offset()});
  return payload;
}

void check_disjoint(std::vector<Extent> extents) {
  std::ranges::sort(extents, {}, &Extent::begin);
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].begin < extents[i - 1].end) damaged("two members overlap");
}

// "model/data/weights/weight_0" without "model/": all members are in one folder, named after the file when it
// was written.
std::string_view strip_root(const std::string& name, std::optional<std::string>& root) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == name.size())
    no_export(fmt::format("its member '{}' is not in a folder", name));
  if (!root) root = name.substr(0, slash);
  if (name.compare(0, slash, *root) != 0)
    no_export(fmt::format("its member '{}' is not below '{}'", name, *root));
  return std::string_view(name).substr(slash + 1);
}

}  // namespace

ZipMembers read_zip_directory(Bytes file) {
  const Directory directory = read_end(file);
  if (directory.entries > directory.size / kEntrySize) damaged("the directory is too short for its entries");
  Cursor cursor(file.subspan(directory.offset, directory.size), 0);
  const Bytes before_directory = file.first(directory.offset);
  ZipMembers members;
  std::vector<Extent> extents;
  std::optional<std::string> root;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const Entry entry = read_entry(cursor);
    const Bytes payload = find_payload(before_directory, entry, extents);
    const std::string_view name = strip_root(entry.name, root);
    if (!members.emplace(name, ZipMember{payload, entry.crc32}).second)
      damaged(fmt::format("two members are named '{}'", name));
  }
  if (cursor.rest() != 0) damaged("the directory has unused bytes");
  check_disjoint(std::move(extents));
  return members;
}

}  // namespace ingot::core
