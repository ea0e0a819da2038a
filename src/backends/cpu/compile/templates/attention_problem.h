// SPDX-License-Identifier: Apache-2.0
// The problem that both attention templates solve.
#pragma once

#include <optional>

#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/matrix_operand.h"
#include "ops/attention.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

struct AttentionProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  TensorType result;
  loops::Kernel epilogue;
  double scale = 1;
  bool causal = false;  // query q sees keys 0..q
  bool empty_is_nan = false;
  Dim batch, queries, keys;
  int64_t width = 0;  // of a query or key
  int64_t value_width = 0;
  MatrixOperand query, key, value;
  std::optional<MatrixOperand> mask;  // stride 0: the same for all queries, or for all keys
  bool mask_is_bool = false;          // otherwise f32, added

  int lanes(CpuFeatures features) const { return features.has(CpuFeature::kX86V4) ? 16 : 8; }
};

AttentionProblem make_attention_problem(std::span<const TensorType> operands, const TensorType& result,
                                        const ops::Attention& attributes, const loops::Kernel& epilogue,
                                        const SymbolTable& symbols);

// The operands at the batch index in the scaffold's dims.
struct PlacedAttention {
  PlacedMatrix query, key, value;
  std::optional<PlacedMatrix> mask;
};
PlacedAttention place_attention(Scaffold& scaffold, const AttentionProblem& problem);

// The two templates: blocks of queries against blocks of keys; a few queries against a stream of keys.
TemplateKernel plan_attention_blocks(AttentionProblem problem, const Target& target);
TemplateKernel plan_attention_stream(AttentionProblem problem, const Target& target);

// What both have in common: symbols, and a key that holds all of `problem`.
TemplateKernel begin_attention_plan(const AttentionProblem& problem, std::string_view name);
// What the sums of powers times values are multiplied by. A query without any key has sums of 0, which become
// 0, or NaN.
llvm::Value* factor_of_sum(llvm::IRBuilder<>& builder, llvm::Value* total, const AttentionProblem& problem);

// Loads the arguments and prepares the epilogue, whose sums are in rows of queries.
class EpilogueFunction;
void begin_attention_kernel(Scaffold& scaffold, EpilogueFunction& epilogue, const AttentionProblem& problem,
                            const std::vector<std::string>& arguments);

}  // namespace ingot::core::cpu
