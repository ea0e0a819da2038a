// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_calls.h"

#include <algorithm>
#include <array>

#include "backends/cuda/images/library_call.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

constexpr int kSharedAlignment = 256;                              // bytes; the library asks for no more
constexpr int kHalf = 2, kBrainHalf = 14, kSingle = 0;             // cudaDataType_t
constexpr int kSums32 = 68, kSums32OfTf32 = 77;                    // cublasComputeType_t
constexpr int kPlainEpilogue = 1, kBiasEpilogue = 4, kTurned = 1;  // cublasLtEpilogue_t, cublasOperation_t
constexpr int kNotSupported = 15;                                  // cublasStatus_t
constexpr uint32_t kSumsInWorkspace = 2;                           // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE

int library_dtype(DType dtype) {
  return dtype == DType::kF16 ? kHalf : dtype == DType::kBF16 ? kBrainHalf : kSingle;
}

bool is_library_dtype(int64_t dtype) {
  return std::ranges::any_of(std::array{DType::kF16, DType::kBF16, DType::kF32},
                             [&](DType known) { return dtype == static_cast<int64_t>(known); });
}

bool is_positive(const Dim& dim) {
  const auto size = dim.constant();
  return size && *size > 0 && *size <= INT32_MAX;
}

bool has_elements(const TensorType& type, const Dim& elements) {
  return type.layout.is_permutation() && product(type.shape) == elements;
}

}  // namespace

bool is_valid_library_call(const Launch& launch, size_t buffers) {
  const auto& constants = launch.constants;
  if (constants.size() != kLibraryConstants || launch.sizes.size() != kLibrarySizes) return false;
  const auto is_argument = [&](int64_t at) { return at >= 2 && at < static_cast<int64_t>(buffers); };
  const int64_t bias = constants[kLibraryBias], added = constants[kLibraryAdded],
                result = constants[kLibraryResult];
  const bool has_arguments = is_argument(result) && (bias == -1 || is_argument(bias)) &&
                             (added == -1 || is_argument(added)) && bias != result && added != result;
  const auto workspace = launch.sizes[kScratchBytes].constant();
  return constants[kGroup] == 1 && constants[kCluster] == 1 && launch.symbols.empty() && has_arguments &&
         constants[kLibraryVersion] >= 0 && constants[kLibraryChoice] >= 0 &&
         constants[kLibraryChoice] < kLibraryChoices && (constants[kLibraryForm] & ~kLibraryForms) == 0 &&
         is_library_dtype(constants[kLibraryDtype]) && workspace && *workspace >= 0 &&
         *workspace <= kMostLibraryWorkspace && is_positive(launch.sizes[kLibraryColumns]) &&
         is_positive(launch.sizes[kLibraryDepth]);
}

bool fits_library_call(const Launch& launch, std::span<const TensorType* const> arguments) {
  const auto& constants = launch.constants;
  const Dim &batch = launch.sizes[kLibraryBatch], &rows = launch.sizes[kLibraryRows],
            &columns = launch.sizes[kLibraryColumns], &depth = launch.sizes[kLibraryDepth];
  const auto dtype = static_cast<DType>(constants[kLibraryDtype]);
  const auto is = [&](int64_t argument, const Dim& elements) {
    if (argument == -1) return true;
    const TensorType& type = *arguments[static_cast<size_t>(argument)];
    return type.dtype == dtype && has_elements(type, elements);
  };
  const int64_t form = constants[kLibraryForm];
  const Dim one = 1;
  return is(0, ((form & kSharesA) != 0 ? one : batch) * rows * depth) &&
         is(1, ((form & kSharesB) != 0 ? one : batch) * columns * depth) &&
         is(constants[kLibraryBias], columns) && is(constants[kLibraryAdded], batch * rows * columns) &&
         is(constants[kLibraryResult], batch * rows * columns);
}

// The library's matrices are column by column: it computes the transposed result from the operands in turn.
LibraryProduct::LibraryProduct(const CublasLt& library, Handle handle, const Shape& shape)
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
        library_.rank(handle_, product_, b_, a_, result_, result_, wish_, static_cast<int>(ranked.size()),
                      ranked.data(), &count),
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
  if (shape_.has_bias)
    check(library_, library_.set_product(product_, ProductAttribute::kBias, &own.bias, sizeof(own.bias)),
          "cublasLtMatmulDescSetAttribute");
  const float one = 1, share = shape_.adds ? 1 : 0;
  // Some that are ranked for operands of little alignment refuse them.
  int result = kNotSupported;
  for (const CublasLtAlgorithm& algorithm : algorithms_) {
    result = library_.multiply(handle_, product_, &one, own.b, b_, own.a, a_, &share,
                               shape_.adds ? own.added : own.result, result_, own.result, result_, &algorithm,
                               own.workspace, static_cast<size_t>(shape_.workspace_bytes), stream);
    if (result != kNotSupported) break;
  }
  check(library_, result, "cublasLtMatmul");
}

LibraryProduct::Arguments LibraryCalls::arguments_of(const KernelCall& call, void* workspace) {
  const auto& constants = call.launch->constants;
  const auto at = [&](LibraryConstant position) -> void* {
    return constants[position] < 0 ? nullptr : call.buffers[static_cast<size_t>(constants[position])];
  };
  return {.a = call.buffers[0],
          .b = call.buffers[1],
          .bias = at(kLibraryBias),
          .added = at(kLibraryAdded),
          .result = at(kLibraryResult),
          .workspace = workspace};
}

const LibraryCalls::Prepared* LibraryCalls::prepare(const KernelCall& call) {
  const auto& constants = call.launch->constants;
  const LibraryProduct::Arguments arguments = arguments_of(call, nullptr);
  uintptr_t addresses = kSharedAlignment;
  for (const void* each : {arguments.a, arguments.b, arguments.bias, arguments.added,
                           static_cast<const void*>(arguments.result)})
    addresses |= reinterpret_cast<uintptr_t>(each);
  if (library_ == nullptr) {
    const char* reason = nullptr;
    const CublasLt* library = find_cublaslt(&reason);
    if (library == nullptr) throw_no_library(reason);
    check(*library, library->create(&handle_), "cublasLtCreate");
    library_ = library;
  }
  const bool is_same = constants[kLibraryVersion] == library_->version;
  const LibraryProduct::Shape shape{.dtype = constants[kLibraryDtype],
                                    .form = constants[kLibraryForm],
                                    .batch = call.sizes[kLibraryBatch],
                                    .rows = call.sizes[kLibraryRows],
                                    .columns = call.sizes[kLibraryColumns],
                                    .depth = call.sizes[kLibraryDepth],
                                    .choice = is_same ? constants[kLibraryChoice] : 0,
                                    .workspace_bytes = call.sizes[kScratchBytes],
                                    .alignment = static_cast<int64_t>(addresses & (~addresses + 1)),
                                    .has_bias = constants[kLibraryBias] >= 0,
                                    .adds = constants[kLibraryAdded] >= 0};
  if (shape.batch <= 0 || shape.rows <= 0) return nullptr;
  if (const auto found = prepared_.find(shape); found != prepared_.end()) return &found->second;
  return &prepared_
              .emplace(shape, Prepared{next_++, std::make_unique<LibraryProduct>(*library_, handle_, shape)})
              .first->second;
}

void LibraryCalls::begin_list() {
  constexpr size_t kMostPrepared = 4096;  // shapes
  if (prepared_.size() > kMostPrepared) prepared_.clear();
}

void LibraryCalls::close() {
  prepared_.clear();
  if (library_ != nullptr) library_->destroy(handle_);
  library_ = nullptr;
}

}  // namespace ingot::core::cuda
