// SPDX-License-Identifier: Apache-2.0
// LLVM's names for our targets.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "support/cpu_features.h"

namespace llvm {
class TargetMachine;
}

namespace ingot::core::cpu {

std::string processor_name(CpuFeatures features);      // "x86-64-v4"
std::string processor_features(CpuFeatures features);  // "+avx512vnni,+avx512bf16"
std::unique_ptr<llvm::TargetMachine> make_target_machine(CpuFeatures features);

// Sets triple and data layout. Throws UnsupportedError for a processor that this build of LLVM does not
// support.
void prepare_module(llvm::Module& module, CpuFeatures features);

}  // namespace ingot::core::cpu
