// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library of matrix products, opened when an engine first needs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// As cublasLt.h declares them.
struct CublasLtAlgorithm {
  std::array<uint64_t, 8> words;
};
struct CublasLtRanked {  // cublasLtMatmulHeuristicResult_t
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
enum class MatrixAttribute : int { kBatch = 5, kBatchStride = 6 };
enum class ProductAttribute : int { kTurnsA = 3, kTurnsB = 4, kEpilogue = 7, kBias = 8, kBiasType = 26 };
enum class WishAttribute : int { kMostWorkspace = 1, kReductions = 3, kAlignmentOfA = 5 };
constexpr int kReductionOfAlgorithm = 3;  // CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME

struct CublasLt {
  int (*create)(Handle*);
  const char* (*status_name)(int);
  int (*create_matrix)(Handle*, int dtype, uint64_t rows, uint64_t columns, int64_t leading);
  int (*set_matrix)(Handle, MatrixAttribute, const void*, size_t);
  int (*destroy_matrix)(Handle);
  int (*create_product)(Handle*, int compute_type, int scale_type);
  int (*set_product)(Handle, ProductAttribute, const void*, size_t);
  int (*destroy_product)(Handle);
  int (*create_wish)(Handle*);  // cublasLtMatmulPreference_t
  int (*set_wish)(Handle, WishAttribute, const void*, size_t);
  int (*destroy_wish)(Handle);
  int (*rank)(Handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle wish, int most,
              CublasLtRanked*, int* count);
  int (*algorithm_attribute)(const CublasLtAlgorithm*, int attribute, void*, size_t, size_t* written);
  int (*multiply)(Handle, Handle product, const void* alpha, const void* a, Handle a_matrix, const void* b,
                  Handle b_matrix, const void* beta, const void* c, Handle c_matrix, void* d, Handle d_matrix,
                  const CublasLtAlgorithm*, void* workspace, size_t workspace_bytes, Handle stream);
  int64_t version;  // 130100 is 13.1.0
};

// Null: `reason` says what is missing, or too old.
const CublasLt* find_cublaslt(const char** reason);

// DeviceError INGOT-D405 with the library's name of the error if `result` is not success.
void check(const CublasLt& library, int result, const char* call);

}  // namespace ingot::core::cuda
