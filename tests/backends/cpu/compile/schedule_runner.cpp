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
constexpr float kGuard = 12345.0f;
constexpr size_t kGuardCount = 64;
}  // namespace

std::string sizes_text(const std::vector<int64_t>& sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }

std::string test_name(std::string case_text, const std::string& level) {
  case_text += " " + level;
  std::ranges::replace_if(case_text, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return case_text;
}

HostBuffer::HostBuffer(const TensorType& type, const SymbolValues& symbols) : layout_(type.layout) {
  std::vector<Dim> shape;
  for (const Dim& dim : type.shape) shape_.push_back(evaluate(dim, symbols));
  for (int64_t size : shape_) shape.push_back(size);
  count_ = static_cast<size_t>(*storage_elements(layout_, shape).constant());
  size_t bytes = ((count_ + kGuardCount) * sizeof(float) + 63) / 64 * 64;
  values_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)), &std::free);
  std::fill_n(data(), count_, 0.0f);
  std::fill_n(data() + count_, kGuardCount, kGuard);
}

size_t HostBuffer::offset(const std::vector<int64_t>& index) const {
  std::vector<Dim> place(index.begin(), index.end()), shape(shape_.begin(), shape_.end());
  if (layout_.is_row_major()) {
    int64_t result = 0;
    for (size_t i = 0; i < index.size(); ++i) result = result * shape_[i] + index[i];
    return static_cast<size_t>(result);
  }
  return static_cast<size_t>(*storage_offset(layout_, shape, place).constant());
}

bool HostBuffer::guard_is_whole() const {
  const float* guard = values_.get() + count_;
  return std::all_of(guard, guard + kGuardCount, [](float value) { return value == kGuard; });
}

HostBuffer random_buffer(const TensorType& type, const SymbolValues& symbols, size_t seed) {
  HostBuffer buffer(type, symbols);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
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
