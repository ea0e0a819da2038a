// SPDX-License-Identifier: Apache-2.0
// A product by cuBLASLt (images/library_call.h).
#pragma once

#include <vector>

#include "backends/cuda/execute/cublaslt.h"
#include "backends/cuda/execute/prepared_call.h"

namespace ingot::core::cuda {

// One shape of a product, with the library's algorithm for it.
class LibraryProduct final : public PreparedCall {
 public:
  struct Shape {
    int64_t dtype, form, batch, rows, columns, depth, choice, workspace_bytes, alignment;
    bool has_bias, adds;
  };

  LibraryProduct(const CublasLt& library, LibraryHandle& handle, const Shape& shape);
  ~LibraryProduct() override;
  void enqueue(const Arguments& arguments, Handle stream) const override;

 private:
  void describe_product();
  void describe_matrices();
  void choose();

  const CublasLt& library_;
  LibraryHandle& handle_;
  const Shape shape_;
  Handle product_ = nullptr, a_ = nullptr, b_ = nullptr, result_ = nullptr, wish_ = nullptr;
  std::vector<CublasLtAlgorithm> algorithms_;  // the choice, then what to take where it does not run
};

}  // namespace ingot::core::cuda
