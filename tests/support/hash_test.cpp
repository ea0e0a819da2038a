// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/digest_all.h"
#include "support/sha256_blocks.h"
#include "support/xxh3.h"

namespace ingot::core {
namespace {

std::string sha256(std::string_view text) { return hex(digest(as_bytes(text))); }

// `size` bytes 0, 1, ..., 250, 0, ...
std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

TEST(Digest, VectorsOfTheStandard) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      sha256(
          "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
          "mnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The values are those of Python's hashlib: sizes around the padding's limits.
TEST(Digest, AgreesWithAnotherLibrary) {
  EXPECT_EQ(sha256(pattern(1)), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
  EXPECT_EQ(sha256(pattern(55)), "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59");
  EXPECT_EQ(sha256(pattern(56)), "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562");
  EXPECT_EQ(sha256(pattern(63)), "29af2686fd53374a36b0846694cc342177e428d1647515f078784d69cdb9e488");
  EXPECT_EQ(sha256(pattern(64)), "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108");
  EXPECT_EQ(sha256(pattern(65)), "4bfd2c8b6f1eec7a2afeb48b934ee4b2694182027e6d0fc075074f2fabb31781");
  EXPECT_EQ(sha256(pattern(119)), "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6");
  EXPECT_EQ(sha256(pattern(120)), "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c");
  EXPECT_EQ(sha256(pattern(127)), "92ca0fa6651ee2f97b884b7246a562fa71250fedefe5ebf270d31c546bfea976");
  EXPECT_EQ(sha256(pattern(128)), "471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5");
  EXPECT_EQ(sha256(pattern(1000)), "4e4c294b331f7a2099a379bec34b9f9fc03dc46ab465d998f4d683da53487e6d");
  EXPECT_EQ(sha256(pattern(100003)), "635e9a7d2f64ce04a46b1503cbe287b8721795f215f4b8cf24b256908acaab1a");
}

TEST(Digest, PiecesGiveTheSameAsTheWhole) {
  const std::string text = pattern(300);
  for (size_t first = 0; first <= text.size(); ++first) {
    for (const size_t second : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}}) {
      DigestBuilder builder;
      const std::string_view view = text;
      builder.update(as_bytes(view.substr(0, first)));
      builder.update(as_bytes(view.substr(first).substr(0, second)));
      builder.update(as_bytes(view.substr(std::min(first + second, view.size()))));
      ASSERT_EQ(builder.finish(), digest(as_bytes(text))) << first << " " << second;
    }
  }
}

// Lengths around whole blocks, from builders at and between block boundaries.
TEST(Digest, TwoAtATimeAreAsOneAfterTheOther) {
  const std::string text = pattern(400);
  const std::string_view view = text;
  for (const size_t before : {size_t{0}, size_t{5}, size_t{64}}) {
    for (const size_t first : {size_t{0}, size_t{1}, size_t{64}, size_t{130}, size_t{256}}) {
      for (size_t second = 0; second <= 260; ++second) {
        DigestBuilder of_first, of_second;
        of_first.update(as_bytes(view.substr(0, before)));
        DigestBuilder::update_two(of_first, as_bytes(view.substr(before, first)), of_second,
                                  as_bytes(view.substr(100, second)));
        ASSERT_EQ(of_first.finish(), digest(as_bytes(view.substr(0, before + first))))
            << before << " " << first;
        ASSERT_EQ(of_second.finish(), digest(as_bytes(view.substr(100, second)))) << second;
      }
    }
  }
}

TEST(Digest, OfManyValuesAreThoseOfEach) {
  for (const size_t count : {0, 1, 2, 3, 40, 41}) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i)
      texts.push_back(pattern(i * i * 97 % 1000 + (i % 7 == 3 ? 2 << 20 : 0)));
    std::vector<Bytes> values;
    size_t bytes = 0;
    for (const std::string& text : texts) values.push_back(as_bytes(text)), bytes += text.size();
    std::atomic<size_t> counted{0};
    const std::vector<Digest> digests = digest_all(values, [] {}, [&](size_t more) { counted += more; });
    ASSERT_EQ(digests.size(), count);
    EXPECT_EQ(counted, bytes);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(digests[i], digest(values[i])) << i << " of " << count;
    EXPECT_EQ(digest_all(values), digests);
  }
}

TEST(Digest, InstructionsAndPortableCodeAgree) {
  if (!has_sha_instructions()) GTEST_SKIP() << "this processor has no SHA instructions";
  const std::string text = pattern(64 * 17);
  DigestState portable = {1, 2, 3, 4, 5, 6, 7, 0xFFFFFFFF};
  DigestState hardware = portable;
  sha256_blocks_portable(portable, as_bytes(text));
  sha256_blocks_x86(hardware, as_bytes(text));
  EXPECT_EQ(portable, hardware);
  DigestState first = {1, 2, 3, 4, 5, 6, 7, 0xFFFFFFFF}, second = portable;
  sha256_two_x86(first, second, as_bytes(text).data(), as_bytes(text).data() + 64, 64 * 16);
  DigestState of_first = {1, 2, 3, 4, 5, 6, 7, 0xFFFFFFFF}, of_second = portable;
  sha256_blocks_portable(of_first, as_bytes(text).first(64 * 16));
  sha256_blocks_portable(of_second, as_bytes(text).subspan(64));
  EXPECT_EQ(first, of_first);
  EXPECT_EQ(second, of_second);
}

TEST(Checksum, IsXxh3OfTheSpecification) {
  EXPECT_EQ(hex(checksum(as_bytes(pattern(0)))), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(1)))), "a6cd5e9392000f6ac44bdff4074eecdb");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(3)))), "e3b55f57945a17cf5f4299fc161c9cbb");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(8)))), "e1e4432a62217fe4cfd50c61c8bb98c1");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(16)))), "72950631827607e2842812cc870dcae2");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(17)))), "685bc458b37d057fc06e233df7729217");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(128)))), "14792fc3af88dc6c05321a0b64d67b41");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(129)))), "dd5e74ac6b45f54ebc30b63382b09a3b");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(240)))), "65b5be86da5540e7c92b68e16f83bbb6");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(241)))), "1da1cb61bcb8a2a102e8cd95421c6d02");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(4096)))), "e12cd72144990fe57135ffa504f1bc71");
  EXPECT_EQ(hex(checksum(as_bytes(pattern(100003)))), "b02e921ecad88f0facf33ba3cf61e369");
}

TEST(Checksum, IsTheSameWithEachInstructionSet) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  const std::string text = pattern(5000);
  for (size_t size = 0; size <= text.size(); size += 7) {
    const Bytes bytes = as_bytes(text).first(size);
    EXPECT_EQ(xxh3_portable(bytes), xxh3_avx2(bytes)) << size;
  }
#endif
}

TEST(Hex, IsLowerCaseAndKeepsZeros) {
  EXPECT_EQ(hex(as_bytes(std::string_view("\x00\x0f\xa0\xff", 4))), "000fa0ff");
  EXPECT_EQ(hex({}), "");
}

}  // namespace
}  // namespace ingot::core
