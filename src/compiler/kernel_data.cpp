// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace ingot::core {
namespace {

constexpr std::byte kPattern{0x5a};
constexpr int64_t kPeriod = 4099;   // period of the values: a prime, so that rows differ
constexpr int64_t kRareCount = 8;   // special values in an operand that is reduced
constexpr size_t kAlignment = 64;   // of all buffers of engines
constexpr double kNudge = 0x1p-21;  // of f32: four units in the last place

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kSpecialFloats{
    0.0,    -0.0,     kInfinity, -kInfinity, 1.0,  -1.0, 1e-40,
    -1e-40, 0x1p-126, 0.5,       -0x1p-149,  1e-7, 88.8, std::numeric_limits<double>::quiet_NaN()};

double special_float(size_t index) { return kSpecialFloats[index % kSpecialFloats.size()]; }

void write(const TrialBuffer& buffer, const TensorView& view, int64_t i, double value) {
  if (is_floating(buffer.dtype())) {
    write_double(view, {&i, 1}, value);
  } else {
    write_integer(view, {&i, 1}, static_cast<int64_t>(value));
  }
}

double value_at(const TrialBuffer& buffer, TrialData data, int64_t i, std::mt19937& random) {
  const double real = std::uniform_real_distribution<double>(-2, 2)(random);
  if (buffer.dtype() == DType::kBool) return real > 0;
  if (!is_floating(buffer.dtype())) return static_cast<double>(i % 7);
  const bool special = data == TrialData::kSpecial && i % 3 == 0;
  return special ? special_float(static_cast<size_t>(random())) : real;
}

}  // namespace

TrialBuffer::TrialBuffer(const TensorType& type, const SymbolValues& symbols)
    : size_(static_cast<size_t>(evaluate(storage_bytes(type), symbols))),
      dtype_(type.dtype),
      elements_(evaluate(storage_elements(type.layout, type.shape), symbols)) {
  bytes_.assign(size_ + 2 * kGuard + kAlignment, kPattern);
  align();
}

TrialBuffer::TrialBuffer(const TrialBuffer& other)
    : bytes_(other.bytes_.size(), kPattern),
      size_(other.size_),
      dtype_(other.dtype_),
      elements_(other.elements_) {
  align();
  std::memcpy(data(), other.data(), size_);
}

void TrialBuffer::align() {
  const auto start = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard;
  offset_ = kGuard + (kAlignment - start % kAlignment) % kAlignment;
}

bool TrialBuffer::guards_hold() const {
  const auto holds = [](std::byte byte) { return byte == kPattern; };
  return std::all_of(bytes_.data(), data(), holds) &&
         std::all_of(data() + size_, bytes_.data() + bytes_.size(), holds);
}

void fill(TrialBuffer& buffer, TrialData data, size_t number, bool distinct) {
  std::mt19937 random(static_cast<uint32_t>(number + 1));
  if (bit_width(buffer.dtype()) < 8) {
    for (size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = static_cast<std::byte>(random());
    return;
  }
  const TensorView view = buffer.view();
  const bool counts = distinct && is_integer(buffer.dtype());
  const int64_t first = counts ? buffer.elements() : std::min(buffer.elements(), kPeriod);
  for (int64_t i = 0; i < first; ++i)
    write(buffer, view, i, counts ? static_cast<double>(i) : value_at(buffer, data, i, random));
  const auto width = static_cast<size_t>(bit_width(buffer.dtype()) / 8);
  for (size_t done = static_cast<size_t>(first) * width; done < buffer.size();) {
    const size_t more = std::min(done, buffer.size() - done);
    std::memcpy(buffer.data() + done, buffer.data(), more / width * width);
    done += more;
  }
  if (data != TrialData::kRare || !is_floating(buffer.dtype()) || buffer.elements() == 0) return;
  for (int64_t i = 0; i < kRareCount; ++i)
    write(buffer, view, static_cast<int64_t>(random()) % buffer.elements(),
          special_float(static_cast<size_t>(i) + number * kRareCount));
}

void nudge(TrialBuffer& buffer, bool up) {
  if (!is_floating(buffer.dtype())) return;
  const TensorView view = buffer.view();
  const double step = buffer.dtype() == DType::kF64   ? 0x1p-50
                      : buffer.dtype() == DType::kF32 ? kNudge
                                                      : 0x1p-7;
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    const double value = read_double(view, {&i, 1});
    if (std::isfinite(value)) write_double(view, {&i, 1}, value * (up ? 1 + step : 1 - step));
  }
}

}  // namespace ingot::core
