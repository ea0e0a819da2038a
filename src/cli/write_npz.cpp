// SPDX-License-Identifier: Apache-2.0
// Zip archives of stored members, in the 64-bit form (APPNOTE.TXT of PKWARE, 4.3 and 4.5.3).
#include <zlib.h>

#include <algorithm>
#include <initializer_list>

#include "cli/npy.h"
#include "cli/npz.h"

namespace ingot::cli {
namespace {

constexpr uint64_t kVersion = 45;  // the first with 64-bit sizes
constexpr uint64_t kNamesAreUtf8 = 1 << 11;
constexpr uint64_t kFirstOfJanuary1980 = 0x21;  // zip's dates begin here
constexpr uint64_t kInExtraField = 0xFFFFFFFF;
constexpr uint64_t kInExtraField16 = 0xFFFF;

struct Number {
  uint64_t value;
  int bytes;
};

// Little-endian.
void append(std::vector<char>& bytes, std::initializer_list<Number> numbers) {
  for (const Number& number : numbers) {
    for (int i = 0; i < number.bytes; ++i) bytes.push_back(static_cast<char>(number.value >> 8 * i));
  }
}

void append(std::vector<char>& bytes, const std::string& text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

struct Member {
  std::string name;
  uint64_t size, offset;
  uint64_t checksum;
};

uint64_t checksum_of(std::span<const char> bytes) {
  constexpr size_t kLargest = size_t{1} << 30;  // zlib counts in 32 bits
  uLong sum = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += kLargest) {
    const auto count = static_cast<uInt>(std::min(kLargest, bytes.size() - at));
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(bytes.data() + at), count);
  }
  return sum;
}

// Fields shared by the local header and the central directory; `size` is that in 32 bits.
void append_facts(std::vector<char>& bytes, const Member& member, uint64_t size) {
  append(bytes, {{kVersion, 2},
                 {kNamesAreUtf8, 2},
                 {0, 2},
                 {0, 2},
                 {kFirstOfJanuary1980, 2},
                 {member.checksum, 4},
                 {size, 4},
                 {size, 4},
                 {member.name.size(), 2}});
}

std::vector<char> local_header(const Member& member) {
  std::vector<char> bytes;
  append(bytes, {{0x04034b50, 4}});
  append_facts(bytes, member, kInExtraField);
  append(bytes, {{20, 2}});
  append(bytes, member.name);
  append(bytes, {{1, 2}, {16, 2}, {member.size, 8}, {member.size, 8}});
  return bytes;
}

void append_directory_entry(std::vector<char>& bytes, const Member& member) {
  // Where 32 bits suffice they are used: minizip, which reads such files, misses the extra field on 64-bit
  // systems.
  const bool is_large = member.size >= kInExtraField || member.offset >= kInExtraField;
  append(bytes, {{0x02014b50, 4}, {kVersion, 2}});
  append_facts(bytes, member, is_large ? kInExtraField : member.size);
  append(bytes, {{is_large ? 28U : 0U, 2}, {0, 2}, {0, 2}, {0, 2}, {0, 4}});
  append(bytes, {{is_large ? kInExtraField : member.offset, 4}});
  append(bytes, member.name);
  if (!is_large) return;
  append(bytes, {{1, 2}, {24, 2}, {member.size, 8}, {member.size, 8}, {member.offset, 8}});
}

std::vector<char> directory(const std::vector<Member>& members, uint64_t offset) {
  std::vector<char> bytes;
  for (const Member& member : members) append_directory_entry(bytes, member);
  const uint64_t size = bytes.size(), count = members.size();
  append(bytes, {{0x06064b50, 4},
                 {44, 8},
                 {kVersion, 2},
                 {kVersion, 2},
                 {0, 4},
                 {0, 4},
                 {count, 8},
                 {count, 8},
                 {size, 8},
                 {offset, 8}});
  append(bytes, {{0x07064b50, 4}, {0, 4}, {offset + size, 8}, {1, 4}});
  append(bytes, {{0x06054b50, 4},
                 {0, 2},
                 {0, 2},
                 {kInExtraField16, 2},
                 {kInExtraField16, 2},
                 {kInExtraField, 4},
                 {kInExtraField, 4},
                 {0, 2}});
  return bytes;
}

}  // namespace

void write_npz(OutputFile& file, const std::vector<Array>& arrays) {
  std::vector<Member> members;
  uint64_t offset = 0;
  for (const Array& array : arrays) {
    const std::vector<char> content = print_npy(array);
    const Member& member =
        members.emplace_back(Member{array.name + ".npy", content.size(), offset, checksum_of(content)});
    const std::vector<char> header = local_header(member);
    file.write(header);
    file.write(content);
    offset += header.size() + content.size();
  }
  file.write(directory(members, offset));
}

}  // namespace ingot::cli
