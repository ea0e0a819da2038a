// SPDX-License-Identifier: Apache-2.0
// Tensors in host memory, with concrete sizes: for evaluation, weights and routines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "types/dtype.h"
#include "types/float_formats.h"

namespace ingot::core {

// A borrowed view. Strides are in elements, may be zero or negative; `data` points at element (0, ..., 0).
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

// A view that keeps its memory alive: a weight on its way from a model into an engine.
struct OwnedView {
  TensorView view;
  std::shared_ptr<const void> owner;  // null: whoever handed it over keeps the memory
};

// Equal for views of the same elements in memory.
using ViewKey = std::tuple<const std::byte*, DType, std::vector<int64_t>, std::vector<int64_t>>;
ViewKey key_of(const TensorView& view);

// An immutable-shape dense row-major tensor that shares ownership of its bytes (`owner` keeps them alive: a
// vector, a mapped file, a Python object).
struct Tensor {
  std::shared_ptr<std::byte> data;  // aliasing pointer into the owner
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;

  int64_t elements() const;
  size_t bytes() const;  // dense, innermost rows rounded up to bytes
  TensorView view() const;
};

Tensor make_tensor(DType dtype, std::vector<int64_t> shape);  // zero-filled, 64-byte aligned
Tensor to_dense(const TensorView& view);                      // a row-major copy
void copy_dense(const TensorView& view, std::byte* target);   // the bytes of to_dense(view)
bool is_dense(const TensorView& view);  // its memory is what copy_dense writes; false for 4-bit elements
std::string to_string(DType dtype, std::span<const int64_t> shape);  // "f32[2,3]"
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);

// Element access through double or int64, converting; for oracles and tests, not fast. Complex elements: the
// real part. To integers: towards zero, modulo the width; NaN and values outside of 64 bits become INT64_MIN
// first.
double read_double(const TensorView& view, std::span<const int64_t> index);
int64_t read_integer(const TensorView& view, std::span<const int64_t> index);
void write_double(const TensorView& view, std::span<const int64_t> index, double value);
void write_integer(const TensorView& view, std::span<const int64_t> index, int64_t value);

}  // namespace ingot::core
