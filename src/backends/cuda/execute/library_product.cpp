// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_product.h"

#include <algorithm>
#include <array>
#include <span>

#include "backends/cuda/images/library_call.h"

namespace ingot::core::cuda {
namespace {

constexpr int kHalf = 2, kBrainHalf = 14, kSingle = 0;             // cudaDataType_t
constexpr int kSums32 = 68, kSums32OfTf32 = 77;                    // cublasComputeType_t
constexpr int kPlainEpilogue = 1, kBiasEpilogue = 4, kTurned = 1;  // cublasLtEpilogue_t, cublasOperation_t
constexpr int kNotSupported = 15;                                  // cublasStatus_t
constexpr uint32_t kSumsInWorkspace = 2;                           // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE

int library_dtype(DType dtype) {
  return dtype == DType::kF16 ? kHalf : dtype == DType::kBF16 ? kBrainHalf : kSingle;
}

}  // namespace

// The library's matrices are column by column: it computes the transposed result from the operands in turn.
LibraryProduct::LibraryProduct(const CublasLt& library, LibraryHandle& handle, const Shape& shape)
    : library_(library), handle_(handle), shape_(shape) {
  describe_product();
  describe_matrices();
  choose();
}

LibraryProduct::~LibraryProduct() {
  for (const Handle matrix : {a_, b_, result_}) {
    if (matrix != nullptr) library_.destroy_matrix(matrix);
  }
  if (product_ != nullptr) library_.destroy_product(product_);
  if (wish_ != nullptr) library_.destroy_wish(wish_);
}

void LibraryProduct::describe_product() {
  const int sums = (shape_.form & kRoundsToTf32) != 0 ? kSums32OfTf32 : kSums32;
  check(library_, library_.create_product(&product_, sums, kSingle), "cublasLtMatmulDescCreate");
  const auto set = [&](ProductAttribute attribute, int32_t value) {
    check(library_, library_.set_product(product_, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(ProductAttribute::kTurnsA, (shape_.form & kDepthInner) != 0 ? kTurned : 0);
  set(ProductAttribute::kEpilogue, shape_.has_bias ? kBiasEpilogue : kPlainEpilogue);
}

void LibraryProduct::describe_matrices() {
  const int dtype = library_dtype(static_cast<DType>(shape_.dtype));
  constexpr int kInvalidValue = 7;
  check(library_, shape_.batch <= INT32_MAX ? 0 : kInvalidValue, "cublasLtMatrixLayoutSetAttribute");
  const auto describe = [&](Handle& matrix, int64_t inner, int64_t outer, bool is_shared) {
    check(library_,
          library_.create_matrix(&matrix, dtype, static_cast<uint64_t>(inner), static_cast<uint64_t>(outer),
                                 inner),
          "cublasLtMatrixLayoutCreate");
    const auto batch = static_cast<int32_t>(shape_.batch);
    const int64_t stride = is_shared ? 0 : inner * outer;
    check(library_, library_.set_matrix(matrix, MatrixAttribute::kBatch, &batch, sizeof(batch)),
          "cublasLtMatrixLayoutSetAttribute");
    check(library_, library_.set_matrix(matrix, MatrixAttribute::kBatchStride, &stride, sizeof(stride)),
          "cublasLtMatrixLayoutSetAttribute");
  };
  const bool is_inner = (shape_.form & kDepthInner) != 0;
  describe(a_, shape_.depth, shape_.rows, (shape_.form & kSharesA) != 0);
  describe(b_, is_inner ? shape_.depth : shape_.columns, is_inner ? shape_.columns : shape_.depth,
           (shape_.form & kSharesB) != 0);
  describe(result_, shape_.columns, shape_.rows, false);
}

// Shares of the depth are added up in f32 and in a fixed order, or not at all: results do not depend on
// timing.
void LibraryProduct::choose() {
  check(library_, library_.create_wish(&wish_), "cublasLtMatmulPreferenceCreate");
  const auto wish = [&](int attribute, auto value) {
    check(library_, library_.set_wish(wish_, static_cast<WishAttribute>(attribute), &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  wish(static_cast<int>(WishAttribute::kMostWorkspace), static_cast<uint64_t>(shape_.workspace_bytes));
  wish(static_cast<int>(WishAttribute::kReductions), kSumsInWorkspace);
  for (int operand = 0; operand < 4; ++operand)
    wish(static_cast<int>(WishAttribute::kAlignmentOfA) + operand, static_cast<uint32_t>(shape_.alignment));
  std::array<CublasLtRanked, 2 * kLibraryChoices> ranked{};
  int count = 0;
  check(library_,
        library_.rank(handle_.handle, product_, b_, a_, result_, result_, wish_,
                      static_cast<int>(ranked.size()), ranked.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic");
  for (const CublasLtRanked& each : std::span(ranked).first(static_cast<size_t>(std::max(count, 0)))) {
    uint32_t reduction = 0;
    size_t written = 0;
    const int known = library_.algorithm_attribute(&each.algorithm, kReductionOfAlgorithm, &reduction,
                                                   sizeof(reduction), &written);
    const bool fits = each.status == 0 && known == 0 && (reduction == 0 || reduction == kSumsInWorkspace) &&
                      each.workspace_bytes <= static_cast<size_t>(shape_.workspace_bytes);
    if (fits) algorithms_.push_back(each.algorithm);
  }
  if (algorithms_.empty()) check(library_, kNotSupported, "cublasLtMatmulAlgoGetHeuristic");
  const auto chosen = std::min(static_cast<size_t>(shape_.choice), algorithms_.size() - 1);
  std::ranges::rotate(algorithms_, algorithms_.begin() + static_cast<ptrdiff_t>(chosen));
}

void LibraryProduct::enqueue(const Arguments& own, Handle stream) const {
  const std::scoped_lock lock(handle_.mutex);
  if (shape_.has_bias)
    check(library_, library_.set_product(product_, ProductAttribute::kBias, &own.bias, sizeof(own.bias)),
          "cublasLtMatmulDescSetAttribute");
  const float one = 1, share = shape_.adds ? 1 : 0;
  // Some that are ranked for operands of little alignment refuse them.
  int result = kNotSupported;
  for (const CublasLtAlgorithm& algorithm : algorithms_) {
    result = library_.multiply(handle_.handle, product_, &one, own.b, b_, own.a, a_, &share,
                               shape_.adds ? own.added : own.result, result_, own.result, result_, &algorithm,
                               own.workspace, static_cast<size_t>(shape_.workspace_bytes), stream);
    if (result != kNotSupported) break;
  }
  check(library_, result, "cublasLtMatmul");
}

}  // namespace ingot::core::cuda
