// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt in the list of calls of a queue (images/library_call.h).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/execute/cublaslt.h"
#include "backends/executor.h"

namespace ingot::core::cuda {

// Whether a launch that calls a library has the counts and ranges of one, for so many arguments.
bool is_valid_library_call(const Launch& launch, size_t buffers);
// Whether it stays within arguments of these types, whatever the values of symbols.
bool fits_library_call(const Launch& launch, std::span<const TensorType* const> arguments);

// One shape of a product, with the library's algorithm for it.
class LibraryProduct {
 public:
  struct Shape {
    int64_t dtype, form, batch, rows, columns, depth, choice, workspace_bytes, alignment;
    bool has_bias, adds;
    auto operator<=>(const Shape&) const = default;
  };
  struct Arguments {
    const void *a, *b, *bias, *added;
    void *result, *workspace;
  };

  LibraryProduct(const CublasLt& library, Handle handle, const Shape& shape);
  ~LibraryProduct();
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;
  void enqueue(const Arguments& arguments, Handle stream) const;

 private:
  void describe_product();
  void describe_matrices();
  void choose();

  const CublasLt& library_;
  const Handle handle_;
  const Shape shape_;
  Handle product_ = nullptr, a_ = nullptr, b_ = nullptr, result_ = nullptr, wish_ = nullptr;
  std::vector<CublasLtAlgorithm> algorithms_;  // the choice, then what to take where it does not run
};

// Those of one queue, by shape. Used by one thread at a time, with the device's context current.
class LibraryCalls {
 public:
  struct Prepared {
    uint64_t number;  // never used twice: lists of calls compare it
    std::unique_ptr<LibraryProduct> product;
  };

  LibraryCalls() = default;
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  void begin_list();  // what was prepared before may go
  void close();       // with the device's context current
  // The product of a valid launch; null if there is nothing to compute. DeviceError INGOT-D405.
  const Prepared* prepare(const KernelCall& call);
  static LibraryProduct::Arguments arguments_of(const KernelCall& call, void* workspace);

 private:
  const CublasLt* library_ = nullptr;
  Handle handle_ = nullptr;
  uint64_t next_ = 0;
  std::map<LibraryProduct::Shape, Prepared> prepared_;
};

}  // namespace ingot::core::cuda
