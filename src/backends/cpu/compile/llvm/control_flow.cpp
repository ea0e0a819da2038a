// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/control_flow.h"

namespace ingot::core::cpu {

namespace {

llvm::BasicBlock* append_block(Builder& builder, const char* name) {
  return llvm::BasicBlock::Create(builder.getContext(), name, builder.GetInsertBlock()->getParent());
}

}  // namespace

std::vector<llvm::Value*> emit_carrying_loop(
    Builder& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
    std::span<llvm::Value* const> initial,
    const std::function<std::vector<llvm::Value*>(llvm::Value* index, std::span<llvm::Value* const> carried)>&
        body) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* inside = append_block(builder, "body");
  llvm::BasicBlock* behind = append_block(builder, "behind");
  // The test is at the bottom, with a guard before the loop: one jump per iteration, without a loop rotation
  // pass.
  builder.CreateCondBr(builder.CreateICmpSLT(begin, end), inside, behind);

  auto phi = [&](llvm::BasicBlock* block, llvm::Value* value) {
    builder.SetInsertPoint(block);
    llvm::PHINode* node = builder.CreatePHI(value->getType(), 2);
    node->addIncoming(value, before);
    return node;
  };
  llvm::PHINode* index = phi(inside, begin);
  std::vector<llvm::Value*> carried, results;
  for (llvm::Value* value : initial) {
    carried.push_back(phi(inside, value));
    results.push_back(phi(behind, value));
  }
  builder.SetInsertPoint(inside);
  std::vector<llvm::Value*> next = body(index, carried);
  llvm::Value* next_index = builder.CreateNSWAdd(index, builder.getInt64(step));
  llvm::BasicBlock* last = builder.GetInsertBlock();
  index->addIncoming(next_index, last);
  for (size_t i = 0; i < next.size(); ++i) {
    llvm::cast<llvm::PHINode>(carried[i])->addIncoming(next[i], last);
    llvm::cast<llvm::PHINode>(results[i])->addIncoming(next[i], last);
  }
  builder.CreateCondBr(builder.CreateICmpSLT(next_index, end), inside, behind);
  builder.SetInsertPoint(behind);
  return results;
}

void emit_loop(Builder& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
               const std::function<void(llvm::Value* index)>& body) {
  emit_carrying_loop(builder, begin, end, step, {}, [&](llvm::Value* index, std::span<llvm::Value* const>) {
    body(index);
    return std::vector<llvm::Value*>{};
  });
}

void emit_if(Builder& builder, llvm::Value* condition, const std::function<void()>& then,
             const std::function<void()>& otherwise) {
  llvm::BasicBlock* yes = append_block(builder, "then");
  llvm::BasicBlock* no = otherwise ? append_block(builder, "else") : nullptr;
  llvm::BasicBlock* behind = append_block(builder, "endif");
  builder.CreateCondBr(condition, yes, no ? no : behind);
  builder.SetInsertPoint(yes);
  then();
  builder.CreateBr(behind);
  if (no) {
    builder.SetInsertPoint(no);
    otherwise();
    builder.CreateBr(behind);
  }
  builder.SetInsertPoint(behind);
}

llvm::Value* stack_array(Builder& builder, llvm::Type* element, int64_t count, int64_t alignment) {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  Builder at_entry(&entry, entry.begin());
  llvm::AllocaInst* array = at_entry.CreateAlloca(element, builder.getInt64(count));
  array->setAlignment(llvm::Align(alignment));
  return array;
}

}  // namespace ingot::core::cpu
