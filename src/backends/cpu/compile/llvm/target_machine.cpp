// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/target_machine.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>

#include "support/error.h"

namespace ingot::core::cpu {

namespace {

// One triple for every system: kernels call nothing, so only the instruction set and the calling convention
// matter.
constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

void register_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

}  // namespace

std::string processor_name(CpuFeatures features) {
  if (features.has(CpuFeature::kX86V4)) return "x86-64-v4";
  if (features.has(CpuFeature::kX86V3)) return "x86-64-v3";
  throw UnsupportedError(
      "INGOT-N601", "kernels require a processor of level x86-64-v3 or higher, not " + to_string(features),
      "use cpu=x86-64-v3 or x86-64-v4");
}

std::string processor_features(CpuFeatures features) {
  std::string text;
  auto add = [&](CpuFeature feature, std::string_view name) {
    if (features.has(feature)) text += (text.empty() ? "+" : ",+") + std::string(name);
  };
  add(CpuFeature::kAvx512Vnni, "avx512vnni");
  add(CpuFeature::kAvx512Bf16, "avx512bf16");
  add(CpuFeature::kAvx512Fp16, "avx512fp16");
  add(CpuFeature::kAmxTile, "amx-tile");
  add(CpuFeature::kAmxBf16, "amx-bf16");
  add(CpuFeature::kAmxInt8, "amx-int8");
  return text;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(CpuFeatures features) {
  register_targets();
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (!target) throw InternalError("LLVM lacks its own target: " + message);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      kTriple, processor_name(features), processor_features(features), {}, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

void prepare_module(llvm::Module& module, CpuFeatures features) {
  module.setTargetTriple(kTriple);
  module.setDataLayout(make_target_machine(features)->createDataLayout());
}

}  // namespace ingot::core::cpu
