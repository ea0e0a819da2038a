// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/run_kernel.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "backends/cpu/compile/emit_kernel.h"
#include "loops/interpreter.h"
#include "loops/overwrite.h"
#include "support/file.h"

namespace ingot::core::cpu::test {
namespace {

using core::test::Storage;
using loops::Access;
using loops::Kernel;

class Compiled {
 public:
  Compiled(const Kernel& kernel, CpuFeatures features) : Compiled(prepare(kernel, features)) {}
  explicit Compiled(const PreparedKernel& prepared)
      : plan_(launch_of(prepared)), code_(make_executable_copy(emit_kernel(prepared).code)) {}

  int64_t run(std::vector<Storage>& storages, const SymbolValues& symbols, int64_t parts) const {
    std::vector<void*> buffers;
    for (Storage& storage : storages) buffers.push_back(storage.data());
    return run(buffers, symbols, parts);
  }

  // Over the whole work range, in about so many parts.
  int64_t run(const std::vector<void*>& buffers, const SymbolValues& symbols, int64_t parts) const {
    const auto function = reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(code_.get()));
    std::vector<int64_t> values;
    for (const std::string& name : plan_.symbols) values.push_back(symbols.at(name));
    const Tensor scratch = make_tensor(DType::kU8, {evaluate(plan_.scratch_bytes, symbols) + 1});
    const int64_t items = evaluate(plan_.work_items, symbols);
    const int64_t grain = std::min(plan_.grain, std::max<int64_t>(items, 1));
    const int64_t step = std::max<int64_t>(1, (items + grain - 1) / grain / parts) * grain;
    int64_t status = 0;
    for (int64_t begin = 0; begin < items; begin += step) {
      status |=
          function(buffers.data(), values.data(), begin, std::min(begin + step, items), scratch.data.get());
    }
    return status;
  }

 private:
  KernelLaunch plan_;
  std::shared_ptr<const std::byte> code_;
};

// Operands that the kernel may overwrite share memory with its result.
void expect_same_in_place(const Kernel& kernel, const Compiled& compiled, const std::vector<Storage>& inputs,
                          std::vector<Storage>& expected, const SymbolValues& symbols, const Check& check) {
  const auto writes = [](const loops::Buffer& buffer) { return buffer.access == Access::kWrite; };
  const auto result =
      static_cast<size_t>(std::ranges::find_if(kernel.buffers, writes) - kernel.buffers.begin());
  for (const uint32_t overwritten : overwritable_buffers(kernel)) {
    std::vector<Storage> got = inputs;
    std::vector<void*> buffers;
    for (Storage& storage : got) buffers.push_back(storage.data());
    buffers[result] = buffers[overwritten];
    compiled.run(buffers, symbols, 3);
    EXPECT_EQ(core::test::difference(expected[result], got[overwritten], check), "")
        << "in place of " << kernel.buffers[overwritten].name << "\n"
        << to_string(kernel);
  }
}

}  // namespace

std::vector<CpuFeatures> targets() {
  std::vector<CpuFeatures> result;
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    const CpuFeatures features = parse_cpu_features(name);
    if (host_cpu_features().covers(features)) result.push_back(features);
  }
  return result;
}

void expect_same(const Kernel& kernel, const SymbolValues& symbols, const Check& check,
                 const std::vector<Tensor>& operands) {
  const std::vector<Storage> inputs = core::test::make_storages(kernel, symbols, check, operands);
  std::vector<Storage> expected = inputs;
  std::vector<TensorView> views;
  for (Storage& storage : expected) views.push_back(storage.view());
  const auto status = static_cast<int64_t>(interpret(kernel, views, symbols));
  for (const CpuFeatures features : targets()) {
    const Compiled compiled(kernel, features);
    for (const int64_t parts : {1, 3}) {
      std::vector<Storage> got = inputs;
      const int64_t got_status = compiled.run(got, symbols, parts);
      EXPECT_EQ(got_status, status) << to_string(features) << "\n" << to_string(kernel);
      for (size_t i = 0; i < got.size(); ++i) {
        const std::string problem = core::test::difference(expected[i], got[i], check);
        EXPECT_EQ(problem, "") << kernel.buffers[i].name << " on " << to_string(features) << ", " << parts
                               << " parts\n"
                               << to_string(kernel);
        EXPECT_TRUE(got[i].guards_hold()) << "a write beyond " << kernel.buffers[i].name << "\n"
                                          << to_string(kernel);
        if (!problem.empty()) return;
      }
    }
    expect_same_in_place(kernel, compiled, inputs, expected, symbols, check);
  }
}

class CompiledKernel::Implementation {
 public:
  Compiled code;
};

CompiledKernel::CompiledKernel(const Kernel& kernel, CpuFeatures features)
    : code_(new Implementation{Compiled(kernel, features)}) {}
CompiledKernel::~CompiledKernel() = default;

int64_t CompiledKernel::run(const std::vector<Tensor>& buffers) const {
  std::vector<void*> pointers;
  for (const Tensor& buffer : buffers) pointers.push_back(buffer.data.get());
  return code_->code.run(pointers, {}, 1);
}

}  // namespace ingot::core::cpu::test
