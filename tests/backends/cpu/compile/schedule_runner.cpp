// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/template_runner.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <random>

#include <fmt/ranges.h>

#include "tests/backends/cpu/compile/runnable_image.h"

namespace ingot::core::cpu {

namespace {
constexpr float kGuard = 112.0F;  // a value of every dtype
constexpr int64_t kGuardCount = 64;
}  // namespace

std::string sizes_text(const std::vector<int64_t>& sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }

std::string test_name(std::string case_text, const std::string& level) {
  case_text += " " + level;
  std::ranges::replace_if(case_text, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return case_text;
}

void PrintTo(const Multiplication& multiplication, std::ostream* out) {
  *out << multiplication.level;
  if (multiplication.b != DType::kF32) *out << " " << name(multiplication.a) << " " << name(multiplication.b);
}

HostBuffer::HostBuffer(const TensorType& type, const SymbolValues& symbols) : layout_(type.layout) {
  std::vector<Dim> shape;
  for (const Dim& dim : type.shape) shape_.push_back(evaluate(dim, symbols));
  for (int64_t size : shape_) shape.push_back(size);
  for (const Dim& extent : storage_shape(layout_, shape)) storage_.push_back(*extent.constant());
  count_ = *storage_elements(layout_, shape).constant();
  values_ = make_tensor(type.dtype, {count_ + kGuardCount});
  for (int64_t i = 0; i < kGuardCount; ++i) write_double(values_.view(), {{count_ + i}}, kGuard);
}

double HostBuffer::at(const std::vector<int64_t>& index) const {
  return read_double(values_.view(), {{offset(index)}});
}

void HostBuffer::set(const std::vector<int64_t>& index, double value) {
  write_double(values_.view(), {{offset(index)}}, value);
}

int64_t HostBuffer::offset(const std::vector<int64_t>& index) const {
  int64_t result = 0;
  for (size_t i = 0; i < storage_.size(); ++i) {
    const LayoutAxis axis = layout_.is_row_major() ? LayoutAxis{static_cast<int32_t>(i)} : layout_.axes[i];
    int64_t along = index[static_cast<size_t>(axis.dim)] / axis.divisor;
    if (axis.modulus != 0) along %= axis.modulus;
    result = result * storage_[i] + along;
  }
  return result;
}

bool HostBuffer::guard_is_whole() const {
  for (int64_t i = 0; i < kGuardCount; ++i) {
    if (read_double(values_.view(), {{count_ + i}}) != double{kGuard}) return false;
  }
  return true;
}

HostBuffer random_buffer(const TensorType& type, const SymbolValues& symbols, size_t seed) {
  HostBuffer buffer(type, symbols);
  std::mt19937 generator(seed);
  const float bound = is_floating(type.dtype) ? 1 : 100;
  std::uniform_real_distribution<float> distribution(-bound, bound);
  for_each_index(buffer.shape(), [&](const auto& index) { buffer.set(index, distribution(generator)); });
  return buffer;
}

void hide_some(HostBuffer& mask, const std::vector<int64_t>& shape) {
  size_t number = 0;
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    bool first_row = shape.size() > 1 && shape[shape.size() - 2] > 1 && index[shape.size() - 2] == 0;
    if (first_row || number++ % 3 == 1) mask.set(index, -INFINITY);
  });
}

void for_each_index(const std::vector<int64_t>& shape,
                    const std::function<void(const std::vector<int64_t>&)>& function) {
  std::vector<int64_t> index(shape.size());
  std::function<void(size_t)> go = [&](size_t dim) {
    if (dim == shape.size()) return function(index);
    for (index[dim] = 0; index[dim] < shape[dim]; ++index[dim]) go(dim + 1);
  };
  go(0);
}

void run_template(const TemplateKernel& plan, const SymbolValues& symbols, std::vector<HostBuffer>& buffers) {
  RunnableImage image(plan.compile());
  std::vector<void*> pointers;
  for (HostBuffer& buffer : buffers) pointers.push_back(buffer.data());
  std::vector<int64_t> values;
  for (const std::string& symbol : plan.launch.symbols) values.push_back(symbols.at(symbol));
  int64_t items = evaluate(plan.launch.work_items, symbols);
  auto scratch_bytes = static_cast<size_t>(evaluate(plan.launch.scratch_bytes, symbols));
  auto align = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  std::unique_ptr<std::byte, decltype(&std::free)> scratch(
      static_cast<std::byte*>(std::aligned_alloc(64, align(scratch_bytes) + 64)), &std::free);
  std::memset(scratch.get(), 0x7f, align(scratch_bytes) + 64);
  int64_t bounds[] = {0, items / 3, items / 3 + items / 2, items};
  for (int part = 0; part < 3; ++part) {
    EXPECT_EQ(image(pointers, values, bounds[part], bounds[part + 1], scratch.get()), 0);
  }
  for (size_t i = scratch_bytes; i < align(scratch_bytes) + 64; ++i)
    ASSERT_EQ(scratch.get()[i], std::byte{0x7f});
  for (const HostBuffer& buffer : buffers) EXPECT_TRUE(buffer.guard_is_whole());
}

}  // namespace ingot::core::cpu
