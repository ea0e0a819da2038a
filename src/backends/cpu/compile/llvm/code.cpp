// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/code.h"

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/compile/llvm/target_machine.h"
#include "support/error.h"

namespace ingot::core::cpu {

Code::Code(CpuFeatures features)
    : features(features),
      context(std::make_unique<llvm::LLVMContext>()),
      module(std::make_unique<llvm::Module>("ingot", *context)) {
  prepare_module(*module, features);
}

llvm::Function* create_function(Code& code, llvm::FunctionType* type, const std::string& name) {
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, *code.module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NoRedZone);
  function->addFnAttr("target-cpu", processor_name(code.features));
  function->addFnAttr("target-features", processor_features(code.features));
  function->addFnAttr("prefer-vector-width", "512");
  function->addFnAttr("probe-stack", "inline-asm");
  return function;
}

llvm::Function* create_kernel_function(Code& code, const std::string& name) {
  llvm::Type* pointer = llvm::PointerType::get(*code.context, 0);
  llvm::Type* number = llvm::Type::getInt64Ty(*code.context);
  auto* type = llvm::FunctionType::get(number, {pointer, pointer, number, number, pointer}, false);
  llvm::Function* function = create_function(code, type, name);
  function->setLinkage(llvm::Function::ExternalLinkage);
  return function;
}

}  // namespace ingot::core::cpu
