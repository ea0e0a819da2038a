// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/execute/execute.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "backends/cpu/kernel_abi.h"
#include "engine/validate_engine.h"
#include "support/error.h"
#include "tests/runtime/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using namespace testing;

#if defined(__x86_64__)

// Stores `begin` at buffers[0][begin], and returns symbols[0].
//   mov rax, [rdi] ; mov [rax + rdx*8], rdx ; mov rax, [rsi] ; ret
const unsigned char kCode[] = {0x48, 0x8B, 0x07, 0x48, 0x89, 0x14, 0xD0, 0x48, 0x8B, 0x06, 0xC3};

EngineData machine_code_engine(const std::string& target = "cpu:x86-64") {
  Program program{.name = "main"};
  const BufferId y = add_output(program, "y", {DType::kI64, {1000}, {}});
  Step step = kernel_step("code", {}, {y});
  step.action =
      KernelStep{"cpu", {.image = 1, .symbols = {0}, .sizes = {1000, 0}, .constants = {1, 1'000'000}}};
  program.steps = {step};
  EngineData engine{.name = "code", .target = "cpu:x86-64"};
  const auto* code = reinterpret_cast<const std::byte*>(kCode);
  engine.images.push_back({.kernel = "first", .target = "cpu:x86-64", .code = {std::byte{0xCC}}});
  engine.images.push_back({.kernel = "code", .target = target, .code = {code, code + sizeof(kCode)}});
  engine.main = program;
  return engine;
}

class CpuExecuteTest : public ::testing::Test {
 protected:
  Tensor run(const std::shared_ptr<Engine>& engine) {
    Outputs outputs;
    Context(engine).run({}, outputs.allocator());
    return outputs.tensors[0];
  }
  const Executor* executors[1] = {&cpu::executor()};
  Host host{HostOptions{}, executors};
};

// The positions that kCode wrote are the beginnings of the parts.
std::vector<int64_t> parts(const Tensor& y) {
  std::vector<int64_t> begins = {0};
  const auto* values = reinterpret_cast<const int64_t*>(y.data.get());
  for (int64_t i = 1; i < 1000; ++i) {
    if (values[i] == i) begins.push_back(i);
  }
  return begins;
}

TEST_F(CpuExecuteTest, RunsImagesFromMemory) {
  const auto engine = Engine::create(std::make_shared<EngineData>(machine_code_engine()), host);
  EXPECT_EQ(parts(run(engine)).size(), static_cast<size_t>(host.pool().threads()));
}

// There is no function to call.
TEST_F(CpuExecuteTest, RefusesImagesForNoProcessor) {
  for (const char* target : {"cpu", "cpu:"})
    EXPECT_THROW(Engine::create(std::make_shared<EngineData>(machine_code_engine(target)), host), UserError);
  for (const char* target : {"", ":x86-64", "cuda", "cuda:sm_90", "cpus:x86-64"})
    EXPECT_THROW(validate_engine(machine_code_engine(target)), UserError) << target;
}

TEST_F(CpuExecuteTest, RunsImagesFromTheFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.ingot";
  write_file_atomically(path, [](const Sink& sink) { write_engine(machine_code_engine(), sink); });
  {
    const auto engine = Engine::load(path, {}, host);
    EXPECT_EQ(parts(run(engine)).size(), static_cast<size_t>(host.pool().threads()));
  }
}

// Between the check of the file and the map of its code.
TEST_F(CpuExecuteTest, RefusesCodeThatIsNotWhatWasChecked) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.ingot";
  write_file_atomically(path, [](const Sink& sink) { write_engine(machine_code_engine(), sink); });
  const auto file = EngineFile::open(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(file->image_offset(0)))
      .put('!');
  try {
    Engine::load(file, {}, host);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U211");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("section 'images'"));
  }
}

TEST_F(CpuExecuteTest, LeavesSmallWorkToTheCaller) {
  EngineData data = machine_code_engine();
  data.main.steps[0].as<KernelStep>()->launch.constants[cpu::kItemCost] = 1;
  EXPECT_EQ(parts(run(Engine::create(std::make_shared<EngineData>(data), host))).size(), 1u);
}

TEST_F(CpuExecuteTest, KeepsPartsToMultiplesOfTheGrain) {
  EngineData data = machine_code_engine();
  data.main.steps[0].as<KernelStep>()->launch.constants[cpu::kGrain] = 300;
  for (const int64_t begin : parts(run(Engine::create(std::make_shared<EngineData>(data), host))))
    EXPECT_EQ(begin % 300, 0);
}

TEST_F(CpuExecuteTest, ReportsTheKernelsStatus) {
  EngineData data = machine_code_engine();
  data.main.steps[0].as<KernelStep>()->launch.symbols = {1};
  EXPECT_THROW(run(Engine::create(std::make_shared<EngineData>(data), host)), UserError);
}

TEST_F(CpuExecuteTest, RefusesImagesForOtherProcessors) {
  try {
    Engine::create(std::make_shared<EngineData>(machine_code_engine("cpu:aarch64")), host);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U220");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("built for a processor with aarch64"));
  }
}

#endif

}  // namespace
}  // namespace ingot::core
