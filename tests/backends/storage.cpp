// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace ingot::core::test {
namespace {

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
  const size_t size = storage.size();
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

}  // namespace

bool Storage::guards_hold() const {
  const auto untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
  return std::all_of(bytes.begin(), bytes.begin() + kGuard, untouched) &&
         std::all_of(bytes.end() - kGuard, bytes.end(), untouched);
}

std::vector<Storage> make_storages(const loops::Kernel& kernel, const SymbolValues& symbols,
                                   const Check& check, const std::vector<Tensor>& operands) {
  std::mt19937_64 random(check.seed);
  std::vector<Storage> storages;
  for (const loops::Buffer& buffer : kernel.buffers) {
    storages.push_back(make_storage(buffer, symbols));
    if (buffer.access != loops::Access::kWrite) fill(storages.back(), check, random);
  }
  for (size_t i = 0; i < operands.size(); ++i)
    std::memcpy(storages[i].data(), operands[i].data.get(), operands[i].bytes());
  return storages;
}

std::string difference(Storage& expected, Storage& got, const Check& check) {
  const size_t size = expected.size();
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

}  // namespace ingot::core::test
