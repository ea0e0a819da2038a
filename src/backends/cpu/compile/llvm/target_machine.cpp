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
const char* triple_of(CpuFeatures features) {
  return features.has(CpuFeature::kAarch64) ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
}

// Tiny: addresses relative to the instruction, wherever in a page a kernel lies.
llvm::CodeModel::Model code_model_of(CpuFeatures features) {
  return features.has(CpuFeature::kAarch64) ? llvm::CodeModel::Tiny : llvm::CodeModel::Small;
}

void register_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

}  // namespace

std::string processor_name(CpuFeatures features) {
  if (features.has(CpuFeature::kAarch64)) return "generic";
  if (features.has(CpuFeature::kX86V4)) return "x86-64-v4";
  if (features.has(CpuFeature::kX86V3)) return "x86-64-v3";
  throw UnsupportedError(
      "INGOT-N601", "kernels require a processor of level x86-64-v3 or higher, not " + to_string(features),
      "use cpu=x86-64-v3, x86-64-v4 or aarch64");
}

std::string processor_features(CpuFeatures features) {
  std::string text;
  auto add = [&](CpuFeature feature, std::string_view name) {
    if (features.has(feature)) text += (text.empty() ? "+" : ",+") + std::string(name);
  };
  add(CpuFeature::kAvx512Vnni, "avx512vnni");
  add(CpuFeature::kAvx512Bf16, "avx512bf16");
  add(CpuFeature::kAvx512Fp16, "avx512fp16");
  add(CpuFeature::kAvx512Vbmi, "avx512vbmi");
  add(CpuFeature::kAmxTile, "amx-tile");
  add(CpuFeature::kAmxBf16, "amx-bf16");
  add(CpuFeature::kAmxInt8, "amx-int8");
  return text;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(CpuFeatures features) {
  register_targets();
  std::string message;
  const char* const triple = triple_of(features);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) throw InternalError("LLVM lacks its own target: " + message);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, processor_name(features), processor_features(features), {}, llvm::Reloc::PIC_,
      code_model_of(features), llvm::CodeGenOptLevel::Aggressive));
}

void prepare_module(llvm::Module& module, CpuFeatures features) {
  module.setTargetTriple(triple_of(features));
  module.setDataLayout(make_target_machine(features)->createDataLayout());
}

}  // namespace ingot::core::cpu
