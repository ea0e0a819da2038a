// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/library_product.h"

#include <algorithm>
#include <optional>

#include "backends/cuda/compile/library_epilogue.h"
#include "backends/cuda/compile/library_kernel.h"
#include "backends/cuda/compile/product_shape.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kLibraryAlignment = 16;  // bytes, of rows

bool is_one(const std::vector<Dim>& extents) {
  return std::ranges::all_of(extents, [](const Dim& dim) { return dim == Dim(1); });
}

// Whether the batch of an operand is the result's (false), one for all (true), or neither.
std::optional<bool> shares(const TensorType& operand, const std::vector<Dim>& batch) {
  const std::vector<Dim> own(operand.shape.begin(), operand.shape.end() - 2);
  if (own == batch) return false;
  return is_one(own) ? std::optional(true) : std::nullopt;
}

// Whether the last two dims are in this order, or the other, and what is before them in front of them.
bool is_contiguous(const TensorType& type, bool is_turned) {
  if (!type.layout.is_permutation()) return false;
  std::vector<Dim> index;
  for (size_t i = 0; i < type.rank(); ++i) index.push_back(Dim::symbol("$l" + std::to_string(i)));
  Shape shape = type.shape;
  std::vector<Dim> ordered = index;
  if (is_turned) {
    std::swap(shape[type.rank() - 1], shape[type.rank() - 2]);
    std::swap(ordered[type.rank() - 1], ordered[type.rank() - 2]);
  }
  return storage_offset(type.layout, type.shape, index) == storage_offset({}, shape, ordered);
}

std::optional<int64_t> operand_form(const Node& node, const ProductShape& shape) {
  const TensorType &a = node.operand_type(0), &b = node.operand_type(1);
  if (a.dtype != b.dtype || node.results[0]->type.dtype != a.dtype || !is_contiguous(a, false)) return {};
  const int64_t inner = shape.b_depth_inner ? kDepthInner : 0;
  if (node.op == &ops::linear) return b.layout.is_row_major() ? std::optional(inner) : std::nullopt;
  if (a.rank() < 2 || b.rank() < 2 || !is_contiguous(b, shape.b_depth_inner)) return {};
  const std::vector<Dim> batch = result_extents(node, shape.batch_dims);
  const auto of_a = shares(a, batch), of_b = shares(b, batch);
  if (!of_a || !of_b) return {};
  return inner | (*of_a ? kSharesA : 0) | (*of_b ? kSharesB : 0);
}

// As the executor will ask when it loads the launch: sizes can be equal without being equal expressions.
bool has_own_elements(const Node& node, const ProductShape& shape, int64_t form) {
  const Dim of_a = (form & kSharesA) != 0 ? Dim(1) : shape.batch,
            of_b = (form & kSharesB) != 0 ? Dim(1) : shape.batch;
  return product(node.operand_type(0).shape) == of_a * shape.rows * shape.depth &&
         product(node.operand_type(1).shape) == of_b * shape.columns * shape.depth &&
         product(node.results[0]->type.shape) == shape.batch * shape.rows * shape.columns;
}

bool has_sizes(const ProductShape& shape, DType dtype) {
  const int64_t multiple = kLibraryAlignment / (bit_width(dtype) / 8);
  return std::ranges::all_of(std::array{shape.columns, shape.depth}, [&](const Dim& dim) {
    const auto size = dim.constant();
    return size && *size > 0 && *size % multiple == 0;
  });
}

}  // namespace

std::vector<LoweredKernel> library_products(const ContractionSite& site, const loops::Kernel& epilogue,
                                            size_t arguments, int64_t version, int64_t choices) {
  const Node& node = site.node;
  if (node.op != &ops::linear && node.op != &ops::matmul) return {};
  ProductShape shape = product_shape(node);
  const DType dtype = node.operand_type(0).dtype;
  // Its plain f32 adds up in an order that loses more than our sums of parts.
  const bool is_known = is_half(dtype) || (dtype == DType::kF32 && site.rounds_to_tf32);
  if (!is_known || !site.norms.is_empty() || !has_sizes(shape, dtype)) return {};
  auto form = operand_form(node, shape);
  const auto after = read_library_epilogue(node, shape.column_dim, Layout{}, epilogue);
  // Nothing says what the library makes of NaN in relu, and its gelu is the approximation by tanh.
  if (!form || !after || after->activation != LibraryActivation::kNone) return {};
  if ((*form & (kSharesA | kSharesB)) == kSharesB) {  // the rows of all of the batch are one matrix
    shape.rows = shape.batch * shape.rows;
    shape.batch = 1;
    *form &= ~int64_t{kSharesB};
  }
  if (!has_own_elements(node, shape, *form)) return {};
  const bool has_own_bias = node.op == &ops::linear && node.has_operand(2);
  if (has_own_bias && (after->bias != kNoBuffer || node.operand_type(2).dtype != dtype)) return {};
  const auto first = static_cast<int64_t>(arguments - epilogue.buffers.size());
  const auto position = [&](int64_t buffer) { return buffer == kNoBuffer ? buffer : first + buffer; };
  const int64_t bias = has_own_bias ? 2 : position(after->bias);
  const int64_t tf32 = dtype == DType::kF32 ? kRoundsToTf32 : 0;
  std::vector<LoweredKernel> kernels;
  for (int64_t choice = 0; choice < std::min(choices, kLibraryChoices); ++choice) {
    Launch launch{.sizes = {Dim(1), Dim(0), Dim(kLibraryWorkspace), shape.batch, shape.rows, shape.columns,
                            shape.depth},
                  .constants = {0, 1, 1, version, choice, *form | tf32, static_cast<int64_t>(dtype), bias,
                                position(after->added), position(after->result)}};
    kernels.push_back(library_kernel(kCublasLt, node, site.architecture, std::move(launch)));
  }
  return kernels;
}

}  // namespace ingot::core::cuda
