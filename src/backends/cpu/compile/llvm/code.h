// SPDX-License-Identifier: Apache-2.0
// From an LLVM module to a kernel binary. Thread-safe: all state is in the arguments.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "engine/program.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// One module with its context, for one target.
struct Code {
  explicit Code(CpuFeatures features);

  CpuFeatures features;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

// A function with the attributes of all our code: the target's instructions, no unwinding, no red zone
// (Windows may overwrite it), inline stack probes.
llvm::Function* create_function(Code& code, llvm::FunctionType* type, const std::string& name);

// The entry of a kernel binary: int64_t kernel(void* const* buffers, const int64_t* symbols, int64_t begin,
// int64_t end, void* scratch). Initially without blocks.
llvm::Function* create_kernel_function(Code& code, const std::string& name);

// Optimizes and emits the module. The binary starts with `entry`; all other functions become internal. Throws
// InternalError if the code would need imports, relocations or writable data.
Image make_image(Code& code, llvm::Function* entry);

}  // namespace ingot::core::cpu
