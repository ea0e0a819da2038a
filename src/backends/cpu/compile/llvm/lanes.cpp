// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/lanes.h"

#include "backends/cpu/compile/llvm/expression_emitter.h"
#include "loops/expand_math.h"

namespace ingot::core::cpu {

namespace {

int lanes_of(llvm::Value* vector) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
}

// The only operand of an expression: local 0.
class OneOperand final : public ExpressionSource {
 public:
  explicit OneOperand(llvm::Value* operand) : operand_(operand) {}
  llvm::Value* local(const loops::ExprNode&) override { return operand_; }
  llvm::Value* load(const loops::ExprNode&, llvm::Value*) override { return nullptr; }
  llvm::Value* index(const Dim&) override { return nullptr; }
  bool needs_guard(const loops::ExprNode&) override { return false; }

 private:
  llvm::Value* operand_;
};

}  // namespace

std::vector<llvm::Value*> transpose_lanes(Builder& builder, std::vector<llvm::Value*> rows) {
  int lanes = lanes_of(rows[0]);
  // Each step exchanges one bit of the row number with the same bit of the lane number.
  for (int bit = 1; bit < lanes; bit *= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < lanes; ++lane) {
      low.push_back(lane & bit ? lanes + lane - bit : lane);
      high.push_back(lane & bit ? lanes + lane : lane + bit);
    }
    for (int row = 0; row < lanes; ++row) {
      if (row & bit) continue;
      llvm::Value* a = rows[row];
      llvm::Value* b = rows[row + bit];
      rows[row] = builder.CreateShuffleVector(a, b, low);
      rows[row + bit] = builder.CreateShuffleVector(a, b, high);
    }
  }
  return rows;
}

llvm::Value* alternate_lanes(Builder& builder, llvm::Value* even, llvm::Value* odd) {
  const int lanes = lanes_of(even);
  std::vector<int> order;
  for (int lane = 0; lane < lanes; ++lane) order.insert(order.end(), {lane, lanes + lane});
  return builder.CreateShuffleVector(even, odd, order);
}

llvm::Value* sums_of_lanes(Builder& builder, std::vector<llvm::Value*> rows) {
  int lanes = lanes_of(rows[0]);
  // Each step adds halves of the lanes and leaves half as many vectors.
  for (int bit = lanes / 2; bit > 0; bit /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < lanes; ++lane) {
      low.push_back(lane & bit ? lanes + lane - bit : lane);
      high.push_back(lane & bit ? lanes + lane : lane + bit);
    }
    std::vector<llvm::Value*> next;
    for (int row = 0; row < bit; ++row) {
      llvm::Value* a = rows[row];
      llvm::Value* b = rows[row + bit];
      next.push_back(builder.CreateFAdd(builder.CreateShuffleVector(a, b, low),
                                        builder.CreateShuffleVector(a, b, high)));
    }
    rows = std::move(next);
  }
  return rows[0];
}

llvm::Value* apply_function(Builder& builder, const loops::Function& function, llvm::Value* operand) {
  OneOperand source(operand);
  loops::Expr expression = loops::expand_math(loops::call(function, loops::local(0, DType::kF32)));
  return ExpressionEmitter(builder, lanes_of(operand), source).emit(expression);
}

llvm::Value* apply_expansion(Builder& builder, loops::Expr (*expansion)(const loops::Expr& x),
                             llvm::Value* operand) {
  OneOperand source(operand);
  return ExpressionEmitter(builder, lanes_of(operand), source).emit(expansion(loops::local(0, DType::kF32)));
}

}  // namespace ingot::core::cpu
