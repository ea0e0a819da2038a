// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaffold.h"

#include <set>

#include <fmt/core.h>

namespace ingot::core::cpu {

Scaffold::Scaffold(CpuFeatures features, const std::string& name, const SymbolTable& symbols)
    : code(features),
      entry(create_kernel_function(code, name)),
      builder(llvm::BasicBlock::Create(*code.context, "entry", entry)),
      dims{builder, {}, symbols} {}

void Scaffold::load_arguments(size_t count, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < count; ++i) {
    llvm::Value* place = builder.CreateConstGEP1_64(builder.getPtrTy(), entry->getArg(0), i);
    buffers.push_back(builder.CreateLoad(builder.getPtrTy(), place));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::Value* place = builder.CreateConstGEP1_64(builder.getInt64Ty(), entry->getArg(1), i);
    dims.values[arguments[i]] = builder.CreateLoad(builder.getInt64Ty(), place);
  }
}

Image Scaffold::finish() {
  builder.CreateRet(number(0));
  return make_image(code, entry);
}

std::vector<std::string> symbol_arguments(const loops::Kernel& epilogue, std::span<const TensorType> operands,
                                          std::span<const Dim> others) {
  std::vector<std::string> names = loops::free_symbols(epilogue);
  std::set<std::string> all(names.begin(), names.end());
  auto add = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols()) all.insert(symbol);
  };
  for (const TensorType& type : operands) std::for_each(type.shape.begin(), type.shape.end(), add);
  std::for_each(others.begin(), others.end(), add);
  return {all.begin(), all.end()};
}

std::string describe_problem(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                             std::span<const std::string> arguments, const SymbolTable& symbols) {
  std::string text;
  for (const TensorType& type : operands) text += "\noperand " + to_string(type);
  for (const std::string& name : arguments) {
    const auto info = symbols.find(name);
    if (info == symbols.end()) continue;
    text += fmt::format("\nsymbol {} in {}..{}", name, info->second.range.min, info->second.range.max);
  }
  return text + "\n" + loops::to_string(epilogue);
}

}  // namespace ingot::core::cpu
