// SPDX-License-Identifier: Apache-2.0
// Structured control flow on an IRBuilder: each function leaves the builder in the block after the code that
// it emitted.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <span>
#include <vector>

namespace ingot::core::cpu {

using Builder = llvm::IRBuilder<>;

// for (i64 i = begin; i < end; i += step) body(i)
void emit_loop(Builder& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
               const std::function<void(llvm::Value* index)>& body);

// The same with loop-carried values: the body gets their current values and returns the next; the result is
// the last.
std::vector<llvm::Value*> emit_carrying_loop(
    Builder& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
    std::span<llvm::Value* const> initial,
    const std::function<std::vector<llvm::Value*>(llvm::Value* index, std::span<llvm::Value* const> carried)>&
        body);

void emit_if(Builder& builder, llvm::Value* condition, const std::function<void()>& then,
             const std::function<void()>& otherwise = nullptr);

// An array on the stack, allocated in the function's entry block so that loops do not grow the frame.
llvm::Value* stack_array(Builder& builder, llvm::Type* element, int64_t count, int64_t alignment);

}  // namespace ingot::core::cpu
