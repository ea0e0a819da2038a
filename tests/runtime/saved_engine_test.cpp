// SPDX-License-Identifier: Apache-2.0
// A refitted engine is saved over its own file while the process is killed, or the system crashes, at any
// point: the file is the old one or the new one, whole. The same harnesses around a save in place, or without
// syncs, find torn files, or they would prove nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/snapshot.h"
#include "tests/runtime/fixtures.h"
#include "tests/support/long_mode.h"
#include "tests/support/system_crash.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using namespace testing;

constexpr int64_t kFloats = 20'000;  // per weight: a file of several writes

std::shared_ptr<std::byte> weight_of_saved(float value) {
  Tensor tensor = filled({kFloats}, value, 0.5F);
  return tensor.data;
}

// weighted_engine() with long weights.
EngineData long_engine(float value) {
  EngineData engine = weighted_engine();
  for (SourceWeight& source : engine.sources) source.shape = {kFloats};
  for (WeightData& weight : engine.weights) {
    weight.type = f32({kFloats});
    weight.bytes = kFloats * sizeof(float);
  }
  for (const uint32_t source : {0U, 1U})
    engine.sources[source].data = engine.weights[source].data = weight_of_saved(value + source);
  for (Program* program : {&engine.init, &engine.main}) {
    for (Buffer& buffer : program->buffers) buffer.type = f32({kFloats});
    for (Port& port : program->outputs) port.type = f32({kFloats});
  }
  return engine;
}

std::vector<TestKernel> long_kernels() {
  return {[](const KernelCall& call) -> int64_t {
            for (int64_t i = 0; i < kFloats; ++i) floats(call, 1)[i] = 10 * floats(call, 0)[i];
            return 0;
          },
          [](const KernelCall& call) -> int64_t {
            for (int64_t i = 0; i < kFloats; ++i)
              floats(call, 2)[i] = floats(call, 0)[i] + floats(call, 1)[i];
            return 0;
          }};
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

using SaveFile = void (*)(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill);

void save_as_we_do(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill) {
  write_file_atomically(path, fill);
}

void save_in_place(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill) {
  std::ofstream file(path, std::ios::binary);
  fill([&](Bytes part) {
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size())).flush();
  });
}

class SavedEngine : public ::testing::Test {
 protected:
  SavedEngine() {
    std::filesystem::create_directories(path_.parent_path());
    for (const float value : {1.0F, 7.0F}) {
      write_file_atomically(path_, [&](const Sink& sink) { write_engine(long_engine(value), sink); });
      files_.push_back(content_of(path_));
    }
  }

  // Loads the engine at `path_`, gives it the weights of file `index`, and passes it to `save`.
  template <typename Save>
  void refit_and_save(size_t index, Save&& save) {
    const TestExecutor executor(long_kernels());
    const std::vector<const Executor*> executors{&executor};
    Host host{HostOptions{.threads = 1}, executors};
    const auto engine = Engine::load(path_, {.memory = FileMemory::kCopy}, host);
    const float value = index == 0 ? 1.0F : 7.0F;
    const std::vector<int64_t> shape = {kFloats};
    SourceValues values;
    for (const auto& [name, first] : {std::pair("w", value), std::pair("b", value + 1)}) {
      const auto data = weight_of_saved(first);
      values[name] = {{.data = data.get(), .dtype = DType::kF32, .shape = shape, .strides = {1}}, data};
    }
    engine->refit(values, Coverage::kAll);
    save([&](const Sink& sink) { write_engine(*snapshot(engine), sink, engine->file().get()); });
  }

  bool is_whole(const std::string& content) const {
    return std::ranges::find(files_, content) != files_.end();
  }

  [[noreturn]] void save_until_killed(size_t index) {
    try {
      for (;; ++index) refit_and_save(index % 2, [&](const auto& fill) { save_as_we_do(path_, fill); });
    } catch (...) {
      ::_exit(1);
    }
  }

  // Saves the other weights in a process of its own, which is killed before it writes its `piece`-th piece;
  // false if there are no more than `piece`.
  bool is_killed_before(size_t piece, SaveFile save) {
    const pid_t child = ::fork();
    if (child == 0) {
      size_t next = 0;
      const auto deadly = [&](const Sink& sink, Bytes part) {
        if (next++ == piece) ::raise(SIGKILL);
        sink(part);
      };
      refit_and_save(1, [&](const auto& fill) {
        save(path_, [&](const Sink& sink) { fill([&](Bytes part) { deadly(sink, part); }); });
      });
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  // Kills processes before each piece that they write: how many pieces there are, and how often the file was
  // neither the old one nor the new one.
  std::pair<int, int> pieces_and_torn(SaveFile save) {
    int pieces = 0, torn = 0;
    const auto is_killed = [&] {
      std::ofstream(path_, std::ios::binary) << files_[0];
      return is_killed_before(static_cast<size_t>(pieces), save);
    };
    for (; is_killed(); ++pieces) torn += is_whole(content_of(path_)) ? 0 : 1;
    EXPECT_EQ(content_of(path_), files_[1]) << "saved by the process that nobody killed";
    return {pieces, torn};
  }

  // How long one refit and save takes here.
  std::chrono::microseconds time_of_save() {
    const auto begin = std::chrono::steady_clock::now();
    refit_and_save(0, [&](const auto& fill) { save_as_we_do(path_, fill); });
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  }

  // Kills processes that save in turn, at any time within their first two saves.
  int torn_after_kills(int kills) {
    std::mt19937 random(1);
    const auto most = static_cast<uint32_t>(2 * time_of_save().count() + 1);
    int torn = 0;
    for (int i = 0; i < kills; ++i) {
      const pid_t child = ::fork();
      if (child == 0) save_until_killed(static_cast<size_t>(i));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % most));
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
      torn += is_whole(content_of(path_)) ? 0 : 1;
    }
    return torn;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "saved" / "model.ingot";
  std::vector<std::string> files_;  // the whole ones
};

int kills_of_saves() { return core::test::is_long_mode() ? 5000 : 200; }

TEST_F(SavedEngine, RefitGivesTheFileOfTheOtherWeights) {
  for (const size_t index : {0U, 1U, 0U}) {
    refit_and_save(index, [&](const auto& fill) { save_as_we_do(path_, fill); });
    EXPECT_EQ(content_of(path_), files_[index]);
  }
}

TEST_F(SavedEngine, IsWholeWheneverTheProcessIsKilled) { EXPECT_EQ(torn_after_kills(kills_of_saves()), 0); }

TEST_F(SavedEngine, IsWholeWhereverASaveIsKilled) {
  const auto [pieces, torn] = pieces_and_torn(&save_as_we_do);
  EXPECT_GT(pieces, 2);
  EXPECT_EQ(torn, 0);
}

TEST_F(SavedEngine, IsTornByTheSameKillsIfItIsWrittenInPlace) {
  const auto [pieces, torn] = pieces_and_torn(&save_in_place);
  EXPECT_EQ(torn, pieces);
}

class CrashedSave : public SavedEngine {
 protected:
  // Files after crashes at each point of a save, each in several variants: how many are not whole, and
  // whether the last are the new one.
  void crash_everywhere(Syncs syncs) {
    const FileSystem files = recording_files(syncs);
    refit_and_save(0, [&](const auto& fill) { write_file_atomically(path_, fill, files); });
    const std::vector<DiskChange> changes = take_recorded_changes();
    ASSERT_GE(changes.size(), 5U);
    for (size_t count = 0; count <= changes.size(); ++count) {
      for (int variant = 0; variant < 12; ++variant) check(changes, count, variant > 0);
    }
  }

  void check(const std::vector<DiskChange>& changes, size_t count, bool spoils) {
    Medium before;
    before.apply({.kind = DiskChange::Kind::kCreate, .path = path_});
    const auto* old = reinterpret_cast<const std::byte*>(files_[1].data());
    before.apply({.kind = DiskChange::Kind::kWrite, .path = path_, .bytes = {old, old + files_[1].size()}});
    const std::filesystem::path copy = folder_.path() / "copy";
    after_crash(before, changes, count, spoils, random_).write_to(path_.parent_path(), copy);
    const std::string content = content_of(copy / path_.filename());
    torn_ += is_whole(content) ? 0 : 1;
    if (count == changes.size()) is_new_ = is_new_ && content == files_[0];
    std::filesystem::remove_all(copy);
  }

  std::mt19937 random_{1};
  int torn_ = 0;
  bool is_new_ = true;
};

TEST_F(CrashedSave, LeavesTheOldFileOrTheNewOne) {
  crash_everywhere(Syncs::kCount);
  EXPECT_EQ(torn_, 0);
  EXPECT_TRUE(is_new_) << "a save that returned is on the medium";
}

TEST_F(CrashedSave, LeavesTornFilesIfNothingIsSynced) {
  crash_everywhere(Syncs::kDoNothing);
  EXPECT_GT(torn_, 0);
}

}  // namespace
}  // namespace ingot::core
