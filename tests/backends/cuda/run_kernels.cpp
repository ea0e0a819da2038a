// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cuda/run_kernels.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "loops/interpreter.h"
#include "support/error.h"

namespace ingot::core::cuda::test {

using core::test::Storage;

const Nvrtc* nvrtc() {
  static const std::unique_ptr<const Nvrtc> instance = []() -> std::unique_ptr<const Nvrtc> {
    const char* path = std::getenv("INGOT_NVRTC");
    try {
      return std::make_unique<const Nvrtc>(path == nullptr ? "" : path);
    } catch (const DeviceError&) {
      return nullptr;
    }
  }();
  return instance.get();
}

Gpu* gpu() {
  static const std::unique_ptr<Gpu> instance = Gpu::open();
  return instance.get();
}

std::string write_all(std::vector<Case>& cases) {
  std::vector<KernelText> texts;
  for (Case& c : cases) {
    c.text = write_kernel(c.kernel, "kernel_" + std::to_string(texts.size()), c.options);
    texts.push_back(c.text);
  }
  return translation_unit(texts);
}

void expect_same(const Case& c, const Gpu::Module& module, const core::test::Check& check) {
  const std::vector<Storage> inputs = core::test::make_storages(c.kernel, c.symbols, check, c.operands);
  std::vector<Storage> expected = inputs, got = inputs;
  std::vector<TensorView> views;
  for (Storage& storage : expected) views.push_back(storage.view());
  const auto status = static_cast<int32_t>(interpret(c.kernel, views, c.symbols));
  EXPECT_EQ(gpu()->run(module, c.text.entry, c.text.plan, c.symbols, got), status) << to_string(c.kernel);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(core::test::difference(expected[i], got[i], check), "") << c.kernel.buffers[i].name << "\n"
                                                                      << to_string(c.kernel) << c.text.text;
    EXPECT_TRUE(got[i].guards_hold()) << "a write beyond " << c.kernel.buffers[i].name << "\n" << c.text.text;
  }
}

void expect_all_same(std::vector<Case> cases, const core::test::Check& check) {
  const std::string unit = write_all(cases);
  if (nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  if (gpu() == nullptr) {
    for (const char* architecture : {"sm_80", "sm_90a"})
      EXPECT_FALSE(nvrtc()->compile(unit, architecture).empty());
    return;
  }
  const auto module = gpu()->load(nvrtc()->compile(unit, gpu()->architecture()));
  for (const Case& c : cases) expect_same(c, *module, check);
}

}  // namespace ingot::core::cuda::test
