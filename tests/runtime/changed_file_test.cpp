// SPDX-License-Identifier: Apache-2.0
// Files that others write to while an engine is in use: nothing wrong is sealed, and a copy does not notice.
#include <gmock/gmock.h>

#include <fstream>

#include "engine/container.h"
#include "runtime/prepare.h"
#include "runtime/snapshot.h"
#include "support/error.h"
#include "tests/runtime/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;

// Code and message of a call's error, or "" if it succeeds.
template <typename Call>
std::string refusal_of(Call&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

class ChangedFileTest : public ::testing::Test {
 protected:
  ChangedFileTest() { write_original(weighted_engine()); }

  void write_original(const EngineData& data) {
    original_.clear();
    write_engine(
        data, [&](Bytes part) { original_.append(reinterpret_cast<const char*>(part.data()), part.size()); });
    std::ofstream(path_, std::ios::binary) << original_;
  }
  void write_prepared() {
    EngineData data = weighted_engine();
    prepare_weights(data, host_);
    write_original(data);
  }
  std::shared_ptr<Engine> load(FileMemory memory = FileMemory::kMap) {
    return Engine::load(path_, {.verify = Verify::kFull, .memory = memory}, host_);
  }

  // Changes bytes in place. The file's time changes, or is restored as if its clock had not ticked meanwhile.
  enum class Time { kTells, kHides };
  void put(size_t offset, const std::string& bytes, Time time) {
    const auto modified = std::filesystem::last_write_time(path_);
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(offset))
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    set_time(time == Time::kTells ? modified + std::chrono::seconds(1) : modified);
  }
  void set_time(std::filesystem::file_time_type time) { std::filesystem::last_write_time(path_, time); }
  void flip(size_t offset, Time time = Time::kTells) {
    put(offset, std::string(1, static_cast<char>(original_[offset] ^ 0x10)), time);
  }
  // The first byte of a section's content.
  size_t begin_of(SectionType type) const { return sections()[static_cast<size_t>(type) - 1].offset; }
  std::vector<Section> sections() const {
    return read_container(as_bytes(original_), Checksums::kVerify).sections;
  }

  static std::string saved(const std::shared_ptr<Engine>& engine) {
    std::string file;
    const auto append = [&](Bytes part) {
      file.append(reinterpret_cast<const char*>(part.data()), part.size());
    };
    write_engine(*snapshot(engine), append, engine->file().get());
    return file;
  }
  static float first_output(const std::shared_ptr<Engine>& engine) {
    Context context(engine);
    Outputs outputs;
    context.run({}, outputs.allocator());
    return outputs.at(0)[0];
  }
  auto names_the_file(const std::string& section) const {
    return AllOf(HasSubstr("[INGOT-U211] the file '" + path_.string() + "' changed after it was loaded"),
                 HasSubstr("section '" + section + "'"));
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "model.ingot";
  std::string original_;
  TestExecutor executor_{weighted_kernels()};
  std::vector<const Executor*> executors_{&executor_};
  Host host_{HostOptions{.threads = 2}, executors_};
};

TEST_F(ChangedFileTest, SavingRefusesAChangeInEachSection) {
  for (const bool prepared : {false, true}) {
    if (prepared) write_prepared();
    const auto engine = load();
    for (const Section& section : sections()) {
      if (section.content_length == 0) continue;
      for (const uint64_t offset : {section.offset, section.offset + section.content_length - 1}) {
        flip(offset, Time::kHides);
        EXPECT_THAT(refusal_of([&] { saved(engine); }), names_the_file(section.name));
        put(offset, original_.substr(offset, 1), Time::kHides);
      }
    }
    EXPECT_EQ(saved(engine), original_);
  }
}

TEST_F(ChangedFileTest, ContextsCopiesAndRefitsNoticeANewTime) {
  const auto engine = load();
  Context before(engine);
  flip(begin_of(SectionType::kWeights));
  const Tensor b = filled({2}, 0.5);
  EXPECT_THAT(refusal_of([&] { Context after(engine); }), names_the_file("weights"));
  EXPECT_THAT(refusal_of([&] { engine->copy(); }), names_the_file("weights"));
  EXPECT_THAT(refusal_of([&] { engine->refit({{"b", {b.view(), nullptr}}}, Coverage::kSome); }),
              names_the_file("weights"));
  put(0, original_, Time::kTells);
  EXPECT_EQ(first_output(engine->copy()), 13);
}

TEST_F(ChangedFileTest, ATouchedFileIsStillTheSame) {
  const auto engine = load();
  set_time(std::filesystem::last_write_time(path_) + std::chrono::hours(1));
  EXPECT_EQ(first_output(engine), 13);
  EXPECT_EQ(saved(engine), original_);
}

TEST_F(ChangedFileTest, AReplacedFileIsOfNoMatter) {
  const auto engine = load();
  const std::filesystem::path other = path_.parent_path() / "other";
  std::ofstream(other) << "another file";
  std::filesystem::rename(other, path_);
  EXPECT_EQ(first_output(engine), 13);
  EXPECT_EQ(saved(engine), original_);
}

TEST_F(ChangedFileTest, ATruncatedFileIsNotRead) {
  const auto engine = load();
  std::filesystem::resize_file(path_, 4096);
  EXPECT_THAT(refusal_of([&] { first_output(engine); }), names_the_file("weights"));
  EXPECT_THAT(refusal_of([&] { saved(engine); }), names_the_file("weights"));
}

// Init reads b, which the file keeps, and writes to memory without a checksum.
TEST_F(ChangedFileTest, RefitsDoNotPrepareDamagedWeights) {
  EngineData data = weighted_engine();
  const BufferId b = add_buffer(data.init, "b", f32({2}), WeightStorage{1});
  data.init.steps[0].uses.push_back({b, true, false});
  write_original(data);
  const auto engine = load();
  for (const SectionInfo& section : engine->file()->sections()) {
    if (section.name == "weights") flip(section.offset + 3, Time::kHides);
  }
  const Tensor w = filled({2}, 5);
  EXPECT_THAT(refusal_of([&] { engine->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome); }),
              names_the_file("weights"));
  put(0, original_, Time::kHides);
  EXPECT_EQ(first_output(engine), 13);
  engine->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(engine), 53);
  flip(begin_of(SectionType::kWeights), Time::kHides);
  EXPECT_THAT(refusal_of([&] { saved(engine); }), names_the_file("weights"));
}

// The checksums that the weights are compared with are those of the load.
TEST_F(ChangedFileTest, WeightsOfAnotherEngineInPlaceAreDamage) {
  write_prepared();
  const auto file = EngineFile::open(path_);
  const std::string before = original_;
  EngineData other = weighted_engine();
  other.sources[0].data = other.weights[0].data = bytes_of({7, 8});
  prepare_weights(other, host_);
  write_original(other);
  ASSERT_EQ(original_.size(), before.size());
  EXPECT_THAT(refusal_of([&] { file->verify_weights(0, file->weight_blocks()); }), HasSubstr("INGOT-U210"));
}

TEST_F(ChangedFileTest, CopiesDoNotNotice) {
  const auto engine = load(FileMemory::kCopy);
  for (const Section& section : sections()) {
    if (section.content_length > 0) flip(section.offset);
  }
  EXPECT_EQ(first_output(engine), 13);
  EXPECT_EQ(saved(engine), original_);
  std::filesystem::resize_file(path_, 1);
  EXPECT_EQ(first_output(engine->copy()), 13);
  EXPECT_EQ(saved(engine), original_);
  EXPECT_THAT(refusal_of([&] { load(FileMemory::kCopy); }), HasSubstr("[INGOT-U200]"));
}

TEST_F(ChangedFileTest, MemoryOfTheCallerIsCheckedAsFilesAre) {
  const Tensor memory = make_tensor(DType::kU8, {static_cast<int64_t>(original_.size())});
  std::ranges::copy(as_bytes(original_), memory.data.get());
  const auto engine = Engine::load(EngineFile::open(Bytes(memory.data.get(), original_.size()), memory.data),
                                   {.verify = Verify::kFull}, host_);
  memory.data.get()[begin_of(SectionType::kMetadata)] ^= std::byte{1};
  EXPECT_THAT(refusal_of([&] { saved(engine); }),
              AllOf(HasSubstr("[INGOT-U211] the memory that holds the engine changed after it was loaded"),
                    HasSubstr("section 'metadata'")));
}

TEST_F(ChangedFileTest, WeightsThatChangeWhileTheyAreWrittenAreRefused) {
  EngineData data = weighted_engine();
  auto* value = reinterpret_cast<float*>(const_cast<std::byte*>(data.sources[1].data.get()));
  EXPECT_THAT(refusal_of([&] { write_engine(data, [&](Bytes) { *value = 9; }); }),
              HasSubstr("[INGOT-U211] the engine's weights changed while they were written"));
}

}  // namespace
}  // namespace ingot::core
