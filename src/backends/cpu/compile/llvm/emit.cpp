// SPDX-License-Identifier: Apache-2.0
// Module to machine code. Modules are emitted vectorized and unrolled, so few passes are worth their time.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/InitializePasses.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Scalar/GVN.h>

#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/llvm/flatten.h"
#include "backends/cpu/compile/llvm/target_machine.h"
#include "support/error.h"

namespace ingot::core::cpu {

namespace {

void check_module(const llvm::Module& module) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  const bool is_broken = llvm::verifyModule(module, &stream);
  invariant(!is_broken, "generated code is malformed: " + message);
}

llvm::SmallVector<char, 0> emit(Code& code) {
  check_module(*code.module);
  auto machine = make_target_machine(code.features);
  llvm::SmallVector<char, 0> output;
  llvm::raw_svector_ostream stream(output);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl no_library{llvm::Triple(code.module->getTargetTriple())};
  no_library.disableAllFunctions();  // loops must not become calls of memcpy
  passes.add(new llvm::TargetLibraryInfoWrapperPass(no_library));
  // Without it, masked moves that the target supports would become a branch per lane.
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createCFGSimplificationPass());
  passes.add(llvm::createGVNPass());
  bool refused = machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                              /*DisableVerify=*/true);
  invariant(!refused, "LLVM cannot emit an object file");
  passes.run(*code.module);
  return output;
}

}  // namespace

Image make_image(Code& code, llvm::Function* entry) {
  entry->removeFromParent();
  code.module->getFunctionList().push_front(entry);
  llvm::SmallVector<char, 0> object = emit(code);
  Image image;
  image.kernel = entry->getName().str();
  image.target = "cpu:" + to_string(code.features);
  image.code = flatten({object.data(), object.size()});
  return image;
}

}  // namespace ingot::core::cpu
