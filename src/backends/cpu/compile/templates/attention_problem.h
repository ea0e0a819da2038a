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
  bool causal = false;         // query q sees keys 0..q
  bool causal_by_sum = false;  // ops::Attention::causal_by_sum
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

// The score of a key that is hidden unless `shown`, and of one that the causal mask hides.
llvm::Value* hidden_by_sum(Builder& builder, llvm::Value* score, llvm::Value* shown);
llvm::Value* hidden_by_order(Builder& builder, llvm::Value* score, llvm::Value* shown,
                             const AttentionProblem& problem);

// An i1: whether keys from `first` on, which no query of a block sees by order, may be left out of the
// products of its batch entry. A power of 0 times a value is not 0 if that is infinite or NaN, and where
// -infinity is added to hidden scores, these must be finite.
struct HiddenKeys {
  llvm::Value *first, *keys, *queries;  // sizes of the batch entry
  int lanes;
};
llvm::Value* may_skip_keys(Scaffold& scaffold, const AttentionProblem& problem, const PlacedAttention& placed,
                           const HiddenKeys& hidden);

// Loads the arguments and prepares the epilogue, whose sums are in rows of queries.
class EpilogueFunction;
void begin_attention_kernel(Scaffold& scaffold, EpilogueFunction& epilogue, const AttentionProblem& problem,
                            const std::vector<std::string>& arguments);

}  // namespace ingot::core::cpu
