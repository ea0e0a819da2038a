// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/library_product.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/images/library_call.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kLibraryAlignment = 16;  // bytes, of rows
constexpr int64_t kNoArgument = -1;

// What an epilogue adds to the sums, as buffers of its kernel; -1: nothing.
struct Additions {
  int64_t bias = kNoArgument, added = kNoArgument, result = kNoArgument;
};

class EpilogueReader {
 public:
  EpilogueReader(const Node& node, const ProductShape& shape, const loops::Kernel& epilogue)
      : epilogue_(epilogue), result_(node.results[0]->type), column_dim_(shape.column_dim) {}

  // Nothing if it is more than additions, or its result has another order in memory.
  std::optional<Additions> read() {
    if (epilogue_.stages.size() != 1 || epilogue_.parallel.size() != result_.rank()) return std::nullopt;
    const loops::Stage& stage = epilogue_.stages[0];
    if (!stage.store || !stage.loops.empty() || !stage.bindings.empty() ||
        stage.combine != loops::Combine::kNone)
      return std::nullopt;
    std::vector<Dim> index;
    for (const loops::Loop& loop : epilogue_.parallel) index.push_back(Dim::symbol(loop.variable));
    place_ = storage_offset({}, result_.shape, index);
    column_ = index[column_dim_];
    found_.result = stage.store->buffer;
    if (!is_plain(found_.result, result_.dtype) || place(found_.result, stage.store->index) != place_)
      return std::nullopt;
    if (!take(stage.value) || !has_sums_) return std::nullopt;
    return found_;
  }

 private:
  const TensorType& type(int64_t buffer) const { return epilogue_.buffers[static_cast<size_t>(buffer)].type; }
  bool is_plain(int64_t buffer, DType dtype) const {
    return type(buffer).dtype == dtype && type(buffer).layout.is_permutation();
  }
  Dim place(int64_t buffer, const std::vector<Dim>& index) const {
    return storage_offset(type(buffer).layout, type(buffer).shape, index);
  }

  // Roundings between additions are left out: the library rounds once.
  bool take(const loops::Expr& value) {
    using Kind = loops::ExprNode::Kind;
    if (value->kind == Kind::kConvert)
      return (value->dtype == DType::kF32 || value->dtype == result_.dtype) && take(value->operands[0]);
    if (value->kind == Kind::kBinary && value->binary == loops::Binary::kAdd)
      return take(value->operands[0]) && take(value->operands[1]);
    if (value->kind != Kind::kLoad) return false;
    if (value->buffer == 0) return !std::exchange(has_sums_, true) && sums_place(value->index) == place_;
    if (!is_plain(value->buffer, result_.dtype) || value->buffer == found_.result) return false;
    const Dim at = place(value->buffer, value->index);
    int64_t& position = at == column_ ? found_.bias : found_.added;
    if ((at != column_ && at != place_) || position != kNoArgument) return false;
    position = value->buffer;
    return true;
  }
  Dim sums_place(const std::vector<Dim>& index) const { return storage_offset({}, result_.shape, index); }

  const loops::Kernel& epilogue_;
  const TensorType& result_;
  const size_t column_dim_;
  Dim place_, column_;
  bool has_sums_ = false;
  Additions found_;
};

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

std::string description(const Node& node, const Launch& launch) {
  const auto& constants = launch.constants;
  return fmt::format("cuBLASLt {}, choice {}: {} of {}, form {}, bias {}, added {}, result {}\n",
                     constants[kLibraryVersion], constants[kLibraryChoice], node.op->name,
                     name(node.operand_type(0).dtype), constants[kLibraryForm], constants[kLibraryBias],
                     constants[kLibraryAdded], constants[kLibraryResult]);
}

LoweredKernel kernel_of_library(const ContractionSite& site, Launch launch) {
  std::string text = description(site.node, launch);
  std::string tactic = fmt::format("cuBLASLt, choice {}", launch.constants[kLibraryChoice]);
  const auto compile = [text, name = fmt::format("{}: {}", site.node.op->name, tactic),
                        target = fmt::format("cuda:{}{}", site.architecture, kLibrarySuffix)] {
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    return Image{.kernel = name, .target = target, .code = {bytes, bytes + text.size()}};
  };
  return {
      .tactic = std::move(tactic), .launch = std::move(launch), .key = std::move(text), .compile = compile};
}

}  // namespace

int64_t library_version() {
  static const OpenedCublasLt opened = open_cublaslt();
  return opened.problem.empty() ? opened.version : 0;
}

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
  const auto additions = EpilogueReader(node, shape, epilogue).read();
  if (!form || !additions) return {};
  if ((*form & (kSharesA | kSharesB)) == kSharesB) {  // the rows of all of the batch are one matrix
    shape.rows = shape.batch * shape.rows;
    shape.batch = 1;
    *form &= ~int64_t{kSharesB};
  }
  if (!has_own_elements(node, shape, *form)) return {};
  const bool has_own_bias = node.op == &ops::linear && node.has_operand(2);
  if (has_own_bias && (additions->bias != kNoArgument || node.operand_type(2).dtype != dtype)) return {};
  const auto first = static_cast<int64_t>(arguments - epilogue.buffers.size());
  const auto position = [&](int64_t buffer) { return buffer == kNoArgument ? buffer : first + buffer; };
  const int64_t bias = has_own_bias ? 2 : position(additions->bias);
  const int64_t tf32 = dtype == DType::kF32 ? kRoundsToTf32 : 0;
  std::vector<LoweredKernel> kernels;
  for (int64_t choice = 0; choice < std::min(choices, kLibraryChoices); ++choice) {
    Launch launch{.sizes = {Dim(1), Dim(0), Dim(kLibraryWorkspace), shape.batch, shape.rows, shape.columns,
                            shape.depth},
                  .constants = {0, 1, 1, version, choice, *form | tf32, static_cast<int64_t>(dtype), bias,
                                position(additions->added), position(additions->result)}};
    kernels.push_back(kernel_of_library(site, std::move(launch)));
  }
  return kernels;
}

}  // namespace ingot::core::cuda
