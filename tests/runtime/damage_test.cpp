// SPDX-License-Identifier: Apache-2.0
// However a file is damaged, each way to open it reports it, names the section, and has run nothing before.
#include <gmock/gmock.h>

#include "engine/container.h"
#include "support/error.h"
#include "tests/engine/seal.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using namespace testing;

using FileBytes = std::vector<std::byte>;

// y = w + w, with w a weight that is used as it is.
EngineData saved_doubling_engine() {
  EngineData engine{.name = "doubling", .key = "key of doubling", .target = "null"};
  engine.images = {{.kernel = "double", .target = "null", .code = {std::byte{}}}};
  engine.sources.push_back({.name = "w", .shape = {2}, .data = bytes_of({1, 2})});
  engine.weights.push_back(
      {.name = "w", .type = f32({2}), .origin = FromSource{0}, .data = engine.sources[0].data, .bytes = 8});
  engine.main.name = "main";
  const BufferId w = add_buffer(engine.main, "w", f32({2}), WeightStorage{0});
  const BufferId y = add_output(engine.main, "y", f32({2}));
  engine.main.steps = {kernel_step("double", {w}, {y})};
  return engine;
}

class DamageTest : public ::testing::Test {
 protected:
  // The errors of a lazy load and a first run; "" if both succeed.
  std::string first_run(const FileBytes& bytes) {
    try {
      Context context(Engine::load(EngineFile::open(Bytes(bytes), nullptr), {}, host_));
      Outputs outputs;
      context.run({}, outputs.allocator());
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string full_load(const FileBytes& bytes) {
    try {
      Engine::load(EngineFile::open(Bytes(bytes), nullptr), {.verify = Verify::kFull}, host_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const FileBytes& bytes, const std::string& says, size_t where) {
    const size_t runs = runs_;
    ASSERT_THAT(first_run(bytes), HasSubstr(says)) << where;
    ASSERT_THAT(full_load(bytes), HasSubstr(says)) << where;
    ASSERT_EQ(runs_, runs) << where;
  }

  static FileBytes to_bytes(const EngineData& data) {
    FileBytes bytes;
    write_engine(data, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
    return bytes;
  }

  size_t runs_ = 0;
  TestExecutor executor_{{[this](const KernelCall& call) -> int64_t {
    ++runs_;
    for (int i = 0; i < 2; ++i) floats(call, 1)[i] = 2 * floats(call, 0)[i];
    return 0;
  }}};
  std::vector<const Executor*> executors_{&executor_};
  Host host_{HostOptions{.threads = 1}, executors_};
  FileBytes bytes_ = to_bytes(saved_doubling_engine());
  Container container_ = read_container(bytes_, Checksums::kVerify);
};

TEST_F(DamageTest, WholeFilesRun) {
  EXPECT_EQ(first_run(bytes_), "");
  EXPECT_EQ(full_load(bytes_), "");
  EXPECT_EQ(runs_, 1u);
}

TEST_F(DamageTest, EveryFlippedByteIsNamedBeforeTheFirstRun) {
  const auto flip = [&](size_t at, const std::string& section) {
    bytes_[at] ^= std::byte{0x10};
    expect_refused(bytes_, "section '" + section + "'", at);
    bytes_[at] ^= std::byte{0x10};
  };
  // One byte in 61 of the padding up to the next multiple of 64 KiB.
  constexpr uint64_t kPaddingStride = 61;
  for (size_t at = 0; at < kHeaderBytes; ++at) flip(at, "header");
  for (const Section& section : container_.sections) {
    for (uint64_t i = 0; i < section.length; i += i < section.content_length ? 1 : kPaddingStride)
      flip(section.offset + i, section.name);
  }
}

TEST_F(DamageTest, EveryLengthIsRefused) {
  for (size_t length = 0; length < bytes_.size(); length += length < 4096 ? 1 : 61)
    expect_refused(FileBytes(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(length)), "section '",
                   length);
}

// Contents in each other's places: as they are, which the checksums find, and sealed again, so that only what
// stands in the sections can tell.
TEST_F(DamageTest, SwappedSectionsAreNamed) {
  std::vector<FileBytes> contents;
  for (size_t i = 0; i < kSectionCount; ++i) {
    const Bytes content = container_.content(bytes_, static_cast<SectionType>(i + 1));
    contents.emplace_back(content.begin(), content.end());
  }
  for (size_t i = 0; i < kSectionCount; ++i) {
    for (size_t j = i + 1; j < kSectionCount; ++j) {
      const Section &first = container_.sections[i], &second = container_.sections[j];
      FileBytes moved = bytes_;
      const auto length = static_cast<ptrdiff_t>(std::min(first.length, second.length));
      const auto begin = moved.begin() + static_cast<ptrdiff_t>(first.offset);
      std::swap_ranges(begin, begin + length, moved.begin() + static_cast<ptrdiff_t>(second.offset));
      if (moved != bytes_) expect_refused(moved, "section '", i * kSectionCount + j);

      std::vector<FileBytes> swapped = contents;
      std::swap(swapped[i], swapped[j]);
      const FileBytes sealed = seal(swapped);
      if (contents[i] != contents[j] && sealed != bytes_)
        expect_refused(sealed, "section '", i * kSectionCount + j);
    }
  }
}

}  // namespace
}  // namespace ingot::core
