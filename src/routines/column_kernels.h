// SPDX-License-Identifier: Apache-2.0
// What reductions and iterations of QR do to the columns of matrices of f64, in the widest vectors of the
// processor. Columns start at multiples of 64 bytes and their rows are multiples of 8, so that no kernel has
// a tail of rows: whoever makes them fills them up with zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace ingot::core::routines {

inline constexpr int64_t kRowsOfKernels = 8, kColumnsOfKernels = 4;

struct AlignedDelete {
  void operator()(double* memory) const {
    ::operator delete[](memory, std::align_val_t{kRowsOfKernels * sizeof(double)});
  }
};

// `columns` that are as long as `rows` rounded up, and kColumnsOfKernels more, which are zeros at first.
class PaddedColumns {
 public:
  PaddedColumns(int64_t rows, int64_t columns);
  double* column(int64_t index) const { return memory_.get() + index * stride_; }
  int64_t stride() const { return stride_; }
  int64_t rows() const { return rows_; }  // rounded up

 private:
  int64_t rows_, stride_;
  std::unique_ptr<double[], AlignedDelete> memory_;  // NOLINT
};

// Of column j, `column[i] * row[j]` is subtracted for both pairs, and then dots[j] is its product with
// `with`. Results are read and written kColumnsOfKernels at a time, also past the last column.
struct ColumnUpdate {
  double* data;
  int64_t stride, rows, columns;
  const double *column[2], *row[2];
  const double* with;
  double* dots;
};
void update_columns(const ColumnUpdate& update);

// sum[i] = the product of row i and `with`, which is zero past the last column.
struct ColumnSum {
  const double* data;
  int64_t stride, rows, columns;
  const double* with;
  double* sum;
};
void sum_columns(const ColumnSum& columns);

// Columns x and y become c x + s y and c y - s x.
struct Rotation {
  double c, s;
};

// Collects rotations of adjacent columns, and applies them to a part of the rows at a time, which stays in
// the cache.
class ColumnRotations {
 public:
  explicit ColumnRotations(PaddedColumns& columns) : columns_(columns) { rotations_.reserve(kMostRotations); }
  // From here on, rotations are of columns `first` and first + 1, then of first + 1 and first + 2 ...
  void begin(int64_t first);
  void add(const Rotation& rotation) { rotations_.push_back(rotation); }
  void apply();  // those that remain

  struct Sweep {
    int64_t first, begin;  // the first column and the first rotation
  };

 private:
  static constexpr size_t kMostRotations = 2048;  // before a sweep
  PaddedColumns& columns_;
  std::vector<Rotation> rotations_;
  std::vector<Sweep> sweeps_;
};

}  // namespace ingot::core::routines
