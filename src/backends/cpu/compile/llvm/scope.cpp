// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/scope.h"

#include <algorithm>

#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "loops/index_facts.h"
#include "loops/rarely.h"
#include "support/error.h"

namespace ingot::core::cpu {

using loops::Expr;
using loops::ExprNode;
using loops::stride_along;

namespace {
constexpr int64_t kSmallStride = 4;  // up to this stride, whole registers are loaded and shuffled
}

bool Scope::varies_by_lane(const Dim& dim) const {
  if (lanes == 1) return false;
  return std::ranges::any_of(dim.symbols(), [&](const std::string& name) {
    return name == lane_variable || lane_bindings.contains(name);
  });
}

llvm::Value* ScopeEmitter::evaluate(const Expr& expression) {
  ExpressionEmitter emitter(builder_, scope_.lanes, *this, std::move(scope_.memo));
  llvm::Value* value = emitter.emit(expression);
  scope_.memo = emitter.memo();
  return value;
}

llvm::Value* ScopeEmitter::dim(const Dim& dim) {
  return scope_.varies_by_lane(dim) ? lane_dim(dim) : ordered_sum(dim);
}

llvm::Value* ScopeEmitter::scalar_dim(const Dim& dim) {
  return DimEmitter{builder_, scope_.values, frame_.ranges}.emit(dim);
}

// Adds the most invariant terms first, so that the sums of outer loops are computed outside of inner ones.
llvm::Value* ScopeEmitter::ordered_sum(const Dim& dim) {
  if (dim.kind() != Dim::Kind::kAdd) return scalar_dim(dim);
  std::vector<Dim> by_depth(scope_.order.size() + 1);
  for (const Dim& term : dim.operands()) {
    size_t depth = 0;
    for (const std::string& name : term.symbols()) {
      const auto place = std::ranges::find(scope_.order, name);
      if (place != scope_.order.end())
        depth = std::max(depth, static_cast<size_t>(place - scope_.order.begin()) + 1);
    }
    by_depth[depth] = by_depth[depth] + term;
  }
  llvm::Value* sum = nullptr;
  for (const Dim& part : by_depth) {
    if (part == Dim(0)) continue;
    llvm::Value* value = scalar_dim(part);
    sum = sum == nullptr ? value : builder_.CreateNSWAdd(sum, value);
  }
  return sum == nullptr ? builder_.getInt64(0) : sum;
}

llvm::Value* ScopeEmitter::lane_dim(const Dim& dim) {
  if (!scope_.varies_by_lane(dim)) return broadcast(builder_, ordered_sum(dim), scope_.lanes);
  if (dim.is_symbol()) {
    if (const auto found = scope_.lane_bindings.find(dim.symbol_name()); found != scope_.lane_bindings.end())
      return found->second;
    llvm::Value* first = broadcast(builder_, scope_.values.find(dim.symbol_name())->second, scope_.lanes);
    return builder_.CreateNSWAdd(first, lane_numbers(scope_.lanes, builder_.getInt64Ty()));
  }
  const auto operands = dim.operands();
  llvm::Value* result = lane_dim(operands[0]);
  for (const Dim& operand : operands.subspan(1)) {
    llvm::Value* next = lane_dim(operand);
    switch (dim.kind()) {
      case Dim::Kind::kAdd:
        result = builder_.CreateNSWAdd(result, next);
        break;
      case Dim::Kind::kMultiply:
        result = builder_.CreateNSWMul(result, next);
        break;
      case Dim::Kind::kMaximum:
        result = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, result, next);
        break;
      case Dim::Kind::kMinimum:
        result = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, result, next);
        break;
      default: {
        const auto op =
            dim.kind() == Dim::Kind::kFloorDivide ? loops::Binary::kFloorDivide : loops::Binary::kModulo;
        result = ExpressionEmitter(builder_, scope_.lanes, *this).combine(op, DType::kI64, result, next);
      }
    }
  }
  return result;
}

llvm::Value* ScopeEmitter::address(llvm::Value* data, llvm::Value* offset, DType stored) {
  return builder_.CreateGEP(builder_.getIntNTy(static_cast<unsigned>(bit_width(stored))), data, offset);
}

// Combines the guard and the mask of existing lanes, for a vector access.
llvm::Value* ScopeEmitter::guarded(llvm::Value* guard) {
  if (guard == nullptr) return scope_.mask;
  guard = broadcast(builder_, guard, scope_.lanes);
  return scope_.mask == nullptr ? guard : builder_.CreateAnd(guard, scope_.mask);
}

// nullopt if the offset is not affine in the lane index.
std::optional<Dim> ScopeEmitter::lane_stride(const Dim& offset) const {
  const auto is_bound = [&](const std::string& name) { return scope_.lane_bindings.contains(name); };
  if (std::ranges::any_of(offset.symbols(), is_bound)) return std::nullopt;
  return stride_along(offset, scope_.lane_variable);
}

bool ScopeEmitter::needs_guard(const ExprNode& node) {
  const Shape& shape = frame_.kernel.buffers[static_cast<size_t>(node.buffer)].type.shape;
  const auto extent_of = [&](const std::string& variable) -> const Dim* {
    for (const loops::Loop& loop : frame_.kernel.parallel) {
      if (loop.variable == variable) return &loop.extent;
    }
    return nullptr;
  };
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& dim = node.index[i];
    if (range_of(dim, frame_.ranges).min >= 0 && provably_less(dim, shape[i], frame_.ranges)) continue;
    const Dim* extent = dim.is_symbol() ? extent_of(dim.symbol_name()) : nullptr;
    if (extent == nullptr || *extent != shape[i]) return true;
  }
  return false;
}

llvm::Value* ScopeEmitter::load(const ExprNode& node, llvm::Value* guard) {
  const loops::Buffer& buffer = frame_.kernel.buffers[static_cast<size_t>(node.buffer)];
  const DType stored = buffer.type.dtype;
  if (bit_width(stored) < 8) return load_packed(node);
  llvm::Value* data = frame_.buffers[static_cast<size_t>(node.buffer)];
  const Dim offset = element_offset(buffer, node.index);
  if (!scope_.varies_by_lane(offset)) {
    llvm::Value* pointer = address(data, ordered_sum(offset), stored);
    if (guard != nullptr) {
      llvm::Value* wanted = guard->getType()->isVectorTy() ? builder_.CreateOrReduce(guarded(guard)) : guard;
      pointer = builder_.CreateSelect(wanted, pointer, frame_.spare);
    }
    return load_element(builder_, stored, pointer);
  }
  llvm::Value* mask = guarded(guard);
  const auto stride = lane_stride(offset);
  if (stride == Dim(1))
    return load_lanes(builder_, stored, address(data, ordered_sum(offset), stored), scope_.lanes, mask);
  if (stride == Dim(-1)) {
    llvm::Value* last = address(data, ordered_sum(offset - Dim(scope_.lanes - 1)), stored);
    mask = mask == nullptr ? nullptr : builder_.CreateVectorReverse(mask);
    return builder_.CreateVectorReverse(load_lanes(builder_, stored, last, scope_.lanes, mask));
  }
  const bool is_small =
      stride && stride->is_constant() && *stride->constant() > 1 && *stride->constant() <= kSmallStride;
  if (is_small && mask == nullptr && bit_width(stored) >= 32) {
    const int step = static_cast<int>(*stride->constant());
    return load_strided_lanes(builder_, stored, address(data, ordered_sum(offset), stored), scope_.lanes,
                              step);
  }
  return gather(stored, data, offset, mask);
}

// Lanes outside of the mask read spare memory, so that no lane needs a branch.
llvm::Value* ScopeEmitter::gather(DType stored, llvm::Value* data, const Dim& offset, llvm::Value* mask) {
  llvm::Value* pointers = address(data, lane_dim(offset), stored);
  if (mask != nullptr)
    pointers = builder_.CreateSelect(mask, pointers, broadcast(builder_, frame_.spare, scope_.lanes));
  return gather_lanes(builder_, stored, pointers, scope_.lanes);
}

// Byte offset and shift of a four-bit element. Rows start at byte boundaries.
std::pair<llvm::Value*, llvm::Value*> ScopeEmitter::packed_place(const loops::Buffer& buffer,
                                                                 const std::vector<Dim>& index) {
  const auto extents = storage_shape(buffer.type.layout, buffer.type.shape);
  auto axes = buffer.type.layout.axes;
  for (size_t i = axes.size(); i < extents.size(); ++i) axes.push_back({static_cast<int32_t>(i)});
  Dim row = 0, column = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) row = (i == 1 ? Dim(0) : row * extents[i - 1]) + column;
    column = floor_divide(index[static_cast<size_t>(axes[i].dim)], axes[i].divisor);
    if (axes[i].modulus != 0) column = modulo(column, axes[i].modulus);
  }
  const Dim row_size = extents.empty() ? Dim(1) : ceil_divide(extents.back(), 2);
  const bool lanes = scope_.varies_by_lane(row) || scope_.varies_by_lane(column);
  const auto value = [&](const Dim& part) { return lanes ? lane_dim(part) : ordered_sum(part); };
  return {value(row * row_size + floor_divide(column, 2)), value(modulo(column, 2) * Dim(4))};
}

llvm::Value* ScopeEmitter::load_packed(const ExprNode& node) {
  const loops::Buffer& buffer = frame_.kernel.buffers[static_cast<size_t>(node.buffer)];
  const auto [offset, shift] = packed_place(buffer, node.index);
  llvm::Value* pointers = address(frame_.buffers[static_cast<size_t>(node.buffer)], offset, DType::kU8);
  const bool lanes = pointers->getType()->isVectorTy();
  if (lanes && scope_.mask != nullptr)
    pointers = builder_.CreateSelect(scope_.mask, pointers, broadcast(builder_, frame_.spare, scope_.lanes));
  llvm::Value* bytes = lanes ? gather_lanes(builder_, DType::kU8, pointers, scope_.lanes)
                             : load_element(builder_, DType::kU8, pointers);
  // The nibble is shifted to the upper half, and back with or without sign extension.
  llvm::Value* up = builder_.CreateSub(llvm::ConstantInt::get(shift->getType(), 4), shift);
  llvm::Value* upper = builder_.CreateShl(bytes, builder_.CreateTrunc(up, bytes->getType()));
  return buffer.type.dtype == DType::kI4 ? builder_.CreateAShr(upper, 4) : builder_.CreateLShr(upper, 4);
}

void ScopeEmitter::store_packed(const loops::Store& store, llvm::Value* value) {
  invariant(scope_.lanes == 1, "four-bit elements are stored one at a time");
  const auto [offset, shift] =
      packed_place(frame_.kernel.buffers[static_cast<size_t>(store.buffer)], store.index);
  llvm::Value* pointer = address(frame_.buffers[static_cast<size_t>(store.buffer)], offset, DType::kU8);
  llvm::Value* bits = builder_.CreateTrunc(shift, builder_.getInt8Ty());
  llvm::Value* old = load_element(builder_, DType::kU8, pointer);
  llvm::Value* kept =
      builder_.CreateAnd(old, builder_.CreateNot(builder_.CreateShl(builder_.getInt8(15), bits)));
  llvm::Value* placed = builder_.CreateShl(builder_.CreateAnd(value, builder_.getInt8(15)), bits);
  store_element(builder_, DType::kU8, builder_.CreateOr(kept, placed), pointer);
}

void ScopeEmitter::store(const loops::Store& store, llvm::Value* value) {
  const loops::Buffer& buffer = frame_.kernel.buffers[static_cast<size_t>(store.buffer)];
  const DType stored = buffer.type.dtype;
  if (bit_width(stored) < 8) return store_packed(store, value);
  llvm::Value* data = frame_.buffers[static_cast<size_t>(store.buffer)];
  const Dim offset = element_offset(buffer, store.index);
  if (scope_.lanes == 1)
    return store_element(builder_, stored, value, address(data, ordered_sum(offset), stored));
  value = broadcast(builder_, value, scope_.lanes);
  const auto stride = lane_stride(offset);
  if (stride == Dim(1)) {
    return store_lanes(builder_, stored, value, address(data, ordered_sum(offset), stored), scope_.mask);
  }
  if (stride && stride->is_constant() && scope_.mask == nullptr &&
      has_strided_stores(builder_, stored, *stride->constant())) {
    return store_strided_lanes(builder_, stored, value, address(data, ordered_sum(offset), stored),
                               scope_.lanes, *stride->constant());
  }
  scatter_lanes(builder_, stored, value, address(data, lane_dim(offset), stored), scope_.mask);
}

// Offset of a row's element, in elements.
Dim ScopeEmitter::row_offset(int stage, const std::vector<Dim>& index) {
  const auto& loops = frame_.kernel.stages[static_cast<size_t>(stage)].loops;
  Dim offset = 0;
  for (size_t i = 0; i < loops.size(); ++i) offset = offset * loops[i].extent + index[i];
  return offset * Dim(frame_.rows[static_cast<size_t>(stage)].lanes);
}

llvm::Value* ScopeEmitter::local(const ExprNode& node) {
  if (node.index.empty()) return scope_.scalars.at(node.stage);
  // Stages that share a loop access rows only at the loop's own element.
  if (const auto made = scope_.row_elements.find(node.stage); made != scope_.row_elements.end())
    return made->second;
  const KernelFrame::Row& row = frame_.rows[static_cast<size_t>(node.stage)];
  const Dim offset = row_offset(node.stage, node.index);
  if (!scope_.varies_by_lane(offset)) {
    llvm::Value* pointer = address(row.data, ordered_sum(offset), node.dtype);
    return row.lanes == 1 ? load_element(builder_, node.dtype, pointer)
                          : load_lanes(builder_, node.dtype, pointer, scope_.lanes);
  }
  if (lane_stride(offset) == Dim(1)) {
    return load_lanes(builder_, node.dtype, address(row.data, ordered_sum(offset), node.dtype), scope_.lanes,
                      scope_.mask);
  }
  return gather(node.dtype, row.data, offset, scope_.mask);
}

void ScopeEmitter::store_row(int stage, const std::vector<loops::Loop>& loops, llvm::Value* value) {
  std::vector<Dim> index;
  for (const loops::Loop& loop : loops) index.push_back(Dim::symbol(loop.variable));
  const KernelFrame::Row& row = frame_.rows[static_cast<size_t>(stage)];
  const DType dtype = frame_.kernel.stages[static_cast<size_t>(stage)].value->dtype;
  llvm::Value* pointer = address(row.data, ordered_sum(row_offset(stage, index)), dtype);
  if (scope_.lanes == 1) return store_element(builder_, dtype, value, pointer);
  // Vectors of points are stored whole; the tail of a row is masked, as another row may follow.
  store_lanes(builder_, dtype, broadcast(builder_, value, scope_.lanes), pointer,
              row.lanes == 1 ? scope_.mask : nullptr);
}

void ScopeEmitter::hoist(const Expr& expression, const std::set<std::string>& inner, int pending,
                         bool loads) {
  ExpressionEmitter emitter(builder_, scope_.lanes, *this, std::move(scope_.memo));
  std::map<const ExprNode*, bool> fixed;  // visited nodes: whether their value is invariant in the loops
  const std::function<bool(const Expr&)> visit = [&](const Expr& node) {
    if (const auto found = fixed.find(node.get()); found != fixed.end()) return found->second;
    bool stays = node->kind != ExprNode::Kind::kLocal || node->stage < pending;
    for (const Dim& dim : node->index) {
      for (const std::string& name : dim.symbols()) stays = stays && !inner.contains(name);
    }
    if (node->kind == ExprNode::Kind::kLoad) {
      stays = stays && loads &&
              frame_.kernel.buffers[static_cast<size_t>(node->buffer)].access == loops::Access::kRead;
    }
    for (size_t i = 0; i < node->operands.size(); ++i) {
      // An arm that may not be evaluated unconditionally is not hoisted out of its guard.
      const bool lazy =
          node->kind == ExprNode::Kind::kSelect && i > 0 && emitter.is_guarded(node->operands[i]);
      // A rare arm reads what the others read, and stays in its branch.
      if (i == 1 && loops::is_rare(*node)) continue;
      stays = (!lazy && visit(node->operands[i])) && stays;
    }
    if (stays && node->kind != ExprNode::Kind::kConstant) emitter.emit(node);
    return fixed[node.get()] = stays;
  };
  visit(expression);
  scope_.memo = emitter.memo();
}

}  // namespace ingot::core::cpu
