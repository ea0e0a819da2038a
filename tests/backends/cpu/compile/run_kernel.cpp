// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/run_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "backends/cpu/compile/emit_kernel.h"
#include "loops/interpreter.h"
#include "loops/overwrite.h"
#include "support/file.h"

namespace ingot::core::cpu::test {
namespace {

using loops::Access;
using loops::Kernel;

using Function = int64_t (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

// The storage of a buffer as one flat tensor, between two guards that must stay as they are.
struct Storage {
  static constexpr size_t kGuard = 192;
  std::vector<std::byte> bytes;
  DType dtype;
  int64_t elements;
  std::byte* data() { return bytes.data() + kGuard; }
  TensorView view() { return {data(), dtype, {elements}, {1}}; }
};

Storage make_storage(const loops::Buffer& buffer, const SymbolValues& symbols) {
  const auto size = static_cast<size_t>(evaluate(storage_bytes(buffer.type), symbols));
  Storage storage;
  storage.bytes.assign(size + 2 * Storage::kGuard, std::byte{0x5a});
  std::memset(storage.data(), 0, size);
  storage.dtype = buffer.type.dtype;
  storage.elements = evaluate(storage_elements(buffer.type.layout, buffer.type.shape), symbols);
  return storage;
}

void fill(Storage& storage, const Check& check, std::mt19937_64& random) {
  const size_t size = storage.bytes.size() - 2 * Storage::kGuard;
  if (bit_width(storage.dtype) < 8) {
    for (size_t i = 0; i < size; ++i) storage.data()[i] = static_cast<std::byte>(random());
    return;
  }
  const TensorView view = storage.view();
  std::uniform_real_distribution<double> real(check.low, check.high);
  std::uniform_int_distribution<int64_t> integer(static_cast<int64_t>(check.low),
                                                 static_cast<int64_t>(check.high));
  for (int64_t i = 0; i < storage.elements; ++i) {
    if (is_floating(storage.dtype)) {
      write_double(view, {&i, 1}, real(random));
    } else {
      write_integer(view, {&i, 1},
                    storage.dtype == DType::kBool ? static_cast<int64_t>(random() & 1) : integer(random));
    }
  }
}

double tolerance(DType dtype, const Check& check) {
  switch (dtype) {
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1.6e-2;
    case DType::kE4M3:
      return 0.13;
    case DType::kE5M2:
      return 0.26;
    case DType::kF64:
      return check.relative * 1e-8;
    default:
      return check.relative;
  }
}

// The first element that differs, or nothing.
std::string difference(Storage& expected, Storage& got, const Check& check) {
  const size_t size = expected.bytes.size() - 2 * Storage::kGuard;
  if (!is_floating(expected.dtype)) {
    for (size_t i = 0; i < size; ++i) {
      if (expected.data()[i] != got.data()[i]) return "byte " + std::to_string(i);
    }
    return "";
  }
  const double allowed = tolerance(expected.dtype, check);
  for (int64_t i = 0; i < expected.elements; ++i) {
    const double a = read_double(expected.view(), {&i, 1}), b = read_double(got.view(), {&i, 1});
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= allowed * std::max(std::fabs(a), 1.0))) {
      return "element " + std::to_string(i) + ": " + std::to_string(b) + " for " + std::to_string(a);
    }
  }
  return "";
}

bool guards_hold(Storage& storage) {
  const auto untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
  return std::all_of(storage.bytes.begin(), storage.bytes.begin() + Storage::kGuard, untouched) &&
         std::all_of(storage.bytes.end() - Storage::kGuard, storage.bytes.end(), untouched);
}

class Compiled {
 public:
  Compiled(const Kernel& kernel, CpuFeatures features)
      : plan_(plan_call(kernel, features)),
        code_(make_executable_copy(compile_kernel(kernel, features).code)) {}

  int64_t run(std::vector<Storage>& storages, const SymbolValues& symbols, int64_t parts) const {
    std::vector<void*> buffers;
    for (Storage& storage : storages) buffers.push_back(storage.data());
    return run(buffers, symbols, parts);
  }

  // Over the whole work range, in about so many parts.
  int64_t run(const std::vector<void*>& buffers, const SymbolValues& symbols, int64_t parts) const {
    const auto function = reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(code_.get()));
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
  KernelCallPlan plan_;
  std::shared_ptr<const std::byte> code_;
};

// Operands that the kernel may overwrite lie where its result does.
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
    EXPECT_EQ(difference(expected[result], got[overwritten], check), "")
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
  std::mt19937_64 random(check.seed);
  std::vector<Storage> inputs;
  for (const loops::Buffer& buffer : kernel.buffers) {
    inputs.push_back(make_storage(buffer, symbols));
    if (buffer.access != Access::kWrite) fill(inputs.back(), check, random);
  }
  for (size_t i = 0; i < operands.size(); ++i)
    std::memcpy(inputs[i].data(), operands[i].data.get(), operands[i].bytes());
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
        const std::string problem = difference(expected[i], got[i], check);
        EXPECT_EQ(problem, "") << kernel.buffers[i].name << " on " << to_string(features) << ", " << parts
                               << " parts\n"
                               << to_string(kernel);
        EXPECT_TRUE(guards_hold(got[i])) << "a write beyond " << kernel.buffers[i].name << "\n"
                                         << to_string(kernel);
        if (!problem.empty()) return;
      }
    }
    expect_same_in_place(kernel, compiled, inputs, expected, symbols, check);
  }
}

}  // namespace ingot::core::cpu::test
