// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/aten/program/aten_text.h"
#include "importers/files/crc32.h"
#include "importers/files/zip_archive.h"
#include "support/error.h"
#include "tests/importers/pt2_archives.h"

namespace ingot::core::pt2::test {
namespace {

using ::testing::HasSubstr;

const char* const kArchives[] = {"arguments",           "control", "dynamic", "image", "mutation",
                                 "mutation.functional", "weights"};

std::string zip_error(const std::string& zip) {
  try {
    read_zip_directory(as_bytes(zip));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Crc32, IsThatOfZip) {
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32(as_bytes("The quick brown fox jumps over the lazy dog")), 0x414fa339u);
}

// Bit by bit, as it is defined.
uint32_t plain_crc32(std::string_view text) {
  uint32_t state = ~0u;
  for (const char letter : text) {
    state ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0xedb88320u : 0u);
  }
  return ~state;
}

TEST(Crc32, IsTheSameForEveryLength) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    EXPECT_EQ(crc32(as_bytes(text)), plain_crc32(text)) << i;
    text += static_cast<char>(i * i + 7 * i + (i >> 3));
  }
}

TEST(Zip, ReadsWhatTorchWrites) {
  for (const char* name : kArchives) {
    const std::string bytes = read_bytes(golden_path(name));
    const ZipMembers members = read_zip_directory(as_bytes(bytes));
    EXPECT_TRUE(members.contains("models/model.json")) << name;
    for (const auto& [member, content] : members) {
      EXPECT_EQ(crc32(content.data), content.crc32) << member;
      EXPECT_EQ((reinterpret_cast<const char*>(content.data.data()) - bytes.data()) % 64, 0) << member;
    }
  }
}

TEST(Zip, ReadsRecordsWithAndWithout64Bits) {
  const Members members = {{"a", "one"}, {"b/c", ""}};
  const std::string zip = write_zip(members);
  const ZipMembers read = read_zip_directory(as_bytes(zip));
  EXPECT_EQ(read.size(), 2u);
  EXPECT_EQ(read.at("a").data.size(), 3u);
}

// Positions in write_zip's archive of one member "a" with three bytes.
struct SmallZip {
  std::string bytes = write_zip({{"a", "one"}});
  size_t directory = bytes.find("PK\1\2");
  size_t end = bytes.find("PK\5\6");
};

TEST(Zip, RefusesFeaturesThatTorchDoesNotUse) {
  SmallZip compressed;
  compressed.bytes[compressed.directory + 10] = 8;
  EXPECT_THAT(zip_error(compressed.bytes), HasSubstr("is compressed"));
  SmallZip encrypted;
  encrypted.bytes[encrypted.directory + 8] = 1;
  EXPECT_THAT(zip_error(encrypted.bytes), HasSubstr("is encrypted"));
  SmallZip disks;
  disks.bytes[disks.directory + 34] = 1;
  EXPECT_THAT(zip_error(disks.bytes), HasSubstr("several disks"));
}

TEST(Zip, RefusesWhatReachesOut) {
  SmallZip size;
  size.bytes[size.directory + 20] = size.bytes[size.directory + 24] = 100;
  EXPECT_THAT(zip_error(size.bytes), HasSubstr("cut off"));
  SmallZip offset;
  offset.bytes[offset.directory + 44] = 1;
  EXPECT_THAT(zip_error(offset.bytes), HasSubstr("points past the end"));
  SmallZip entries;
  entries.bytes[entries.end + 8] = entries.bytes[entries.end + 10] = 2;
  EXPECT_THAT(zip_error(entries.bytes), HasSubstr("too short for its entries"));
  SmallZip sizes;
  sizes.bytes[sizes.directory + 24] = 2;
  EXPECT_THAT(zip_error(sizes.bytes), HasSubstr("two sizes"));
}

TEST(Zip, RefusesDuplicatesOverlapsAndPrefixes) {
  std::string twice = write_zip({{"a", "one"}, {"b", "two"}});
  for (size_t place; (place = twice.find("archive/b")) != std::string::npos;) twice[place + 8] = 'a';
  EXPECT_THAT(zip_error(twice), HasSubstr("two members are named 'a'"));
  std::string overlapping = write_zip({{"a", "one"}, {"b", "two"}});
  const size_t first = overlapping.find("PK\1\2");
  const size_t second = overlapping.find("PK\1\2", first + 1);
  overlapping[second + 42] = 0;  // the header of the first member
  overlapping.replace(overlapping.rfind("archive/b"), 9, "archive/a");
  EXPECT_NE(zip_error(overlapping), "");
  EXPECT_NE(zip_error("prefix" + SmallZip().bytes), "");
  EXPECT_NE(zip_error(SmallZip().bytes + "suffix"), "");
}

TEST(Zip, RefusesNamesOutsideOfTheRoot) {
  for (const char* name : {"/chive/a", "other/x/a"}) {
    std::string zip = write_zip({{"a", "one"}, {"b", "two"}});
    for (size_t place; (place = zip.find("archive/a")) != std::string::npos;)
      zip.replace(place, 9, std::string(name).substr(0, 9));
    EXPECT_NE(zip_error(zip), "") << name;
  }
}

TEST(Pt2Truncation, EveryLengthIsRefused) {
  for (const char* name : kArchives) {
    const std::string bytes = read_bytes(golden_path(name));
    for (size_t length = 0; length < bytes.size(); ++length)
      ASSERT_NE(zip_error(bytes.substr(0, length)), "") << name << " " << length;
  }
}

// A flipped bit is rejected, or does not matter: it never makes another program.
TEST(Pt2Flips, NeverChangeTheProgramSilently) {
  for (const char* name : {"mutation", "image"}) {
    std::string bytes = read_bytes(golden_path(name));
    const std::string before = to_string(read(bytes));
    size_t refused = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] ^= static_cast<char>(1 << (i % 8));
      try {
        ASSERT_EQ(to_string(read(bytes)), before) << name << " at byte " << i;
      } catch (const Error& error) {
        ASSERT_NE(error.kind(), ErrorKind::kInternal) << error.what();
        ++refused;
      }
      bytes[i] ^= static_cast<char>(1 << (i % 8));
    }
    EXPECT_GT(refused, bytes.size() / 2) << name;
  }
}

TEST(Pt2Flips, NeverCrashWithoutChecksums) {
  for (const char* name : kArchives) {
    std::string bytes = read_bytes(golden_path(name));
    for (size_t i = 0; i < bytes.size(); i += 5) {
      const char flip = static_cast<char>(1 << (i % 7));
      bytes[i] ^= flip;
      try {
        to_string(read(bytes, false));
      } catch (const Error& error) {
        ASSERT_NE(error.kind(), ErrorKind::kInternal) << error.what();
      }
      bytes[i] ^= flip;
    }
  }
}

}  // namespace
}  // namespace ingot::core::pt2::test
