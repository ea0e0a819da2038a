// SPDX-License-Identifier: Apache-2.0
// A matrix whose columns iterations of QR rotate. Rotations are real: a complex element is two of a column.
#pragma once

#include <algorithm>
#include <span>

#include "routines/column_kernels.h"
#include "routines/matrices.h"

namespace ingot::core::routines {

template <typename Given>
class RotatedMatrix {
 public:
  explicit RotatedMatrix(const Given& matrix)
      : rows_(matrix.rows()), columns_(kDoubles * rows_, matrix.cols()), rotations_(columns_) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) std::copy_n(matrix.col(j).data(), rows_, elements(j));
  }
  RotatedMatrix(const RotatedMatrix&) = delete;
  RotatedMatrix& operator=(const RotatedMatrix&) = delete;

  ColumnRotations& rotations() { return rotations_; }
  // Column j is column order[j] of this one.
  Given columns(std::span<const Eigen::Index> order) const {
    Given result(rows_, static_cast<Eigen::Index>(order.size()));
    for (size_t j = 0; j < order.size(); ++j)
      std::copy_n(elements(order[j]), rows_, result.col(static_cast<Eigen::Index>(j)).data());
    return result;
  }

 private:
  using Scalar = typename Given::Scalar;
  static constexpr int64_t kDoubles = sizeof(Scalar) / sizeof(double);

  Scalar* elements(Eigen::Index column) const { return reinterpret_cast<Scalar*>(columns_.column(column)); }

  Eigen::Index rows_;
  PaddedColumns columns_;
  ColumnRotations rotations_;
};

}  // namespace ingot::core::routines
