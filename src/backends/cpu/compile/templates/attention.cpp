// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/cpu/compile/templates/are_below.h"
#include "backends/cpu/compile/templates/attention_problem.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/tile_shape.h"
#include "ops/attention.h"

namespace ingot::core::cpu {

namespace {

// Up to this many queries, keys are streamed past each query separately (attention_stream.cpp). Blocks would
// use that many of NR lanes. An estimate, not tuned.
constexpr int64_t kFewQueries = 4;

// A mask may have fewer dims than the scores, and sizes of 1.
MatrixOperand place_mask(TensorType mask, const Shape& batch) {
  while (mask.rank() < 2) mask.shape.insert(mask.shape.begin(), 1);
  MatrixOperand operand = place_matrix(mask, batch);
  if (mask.shape[mask.rank() - 2] == Dim(1)) operand.row_stride = 0;
  if (mask.shape.back() == Dim(1)) operand.column_stride = 0;
  return operand;
}

bool has_few_queries(const TensorType& query) {
  const auto queries = query.shape[query.rank() - 2].constant();
  return queries && *queries <= kFewQueries;
}

}  // namespace

bool multiplies_attention_of_bf16(std::span<const TensorType> operands, CpuFeatures features) {
  return multiplies_bf16(features) && !has_few_queries(operands[0]) &&
         operands[0].shape.back().constant().value_or(1) % 2 == 0;
}

Fit supports_attention(std::span<const TensorType> operands, CpuFeatures features) {
  const DType dtype = operands[0].dtype;
  const bool multiplies = dtype == DType::kF32 || (is_half(dtype) && has_few_queries(operands[0])) ||
                          (dtype == DType::kBF16 && multiplies_attention_of_bf16(operands, features));
  if (!multiplies)
    return {false, fmt::format("the attention template does not multiply {} here", name(dtype))};
  for (size_t i = 0; i < 3; ++i) {
    if (!operands[i].shape.back().is_constant())
      return {false, "the attention template requires a constant head size"};
    if (*operands[i].shape.back().constant() == 0)
      return {false, "the attention template requires a head size above 0"};
  }
  if (operands.size() > 3 && operands[3].dtype != DType::kBool && operands[3].dtype != DType::kF32 &&
      !is_half(operands[3].dtype))
    return {false, "the attention template supports only bool, f32, f16 and bf16 masks"};
  return {};
}

LayoutRequest attention_layouts(std::span<const TensorType> operands) {
  LayoutRequest request;
  for (size_t i = 0; i < operands.size(); ++i) {
    bool as_it_is = i < 3 && is_innermost(operands[i], operands[i].rank() - 1);
    request.operands.push_back(as_it_is ? std::nullopt : std::optional(Layout{}));
  }
  request.results = {std::nullopt};
  return request;
}

AttentionProblem make_attention_problem(std::span<const TensorType> operands, const TensorType& result,
                                        const ops::Attention& attributes, const loops::Kernel& epilogue,
                                        const SymbolTable& symbols) {
  AttentionProblem problem;
  problem.symbols = symbols;
  problem.operands.assign(operands.begin(), operands.end());
  problem.result = result;
  problem.epilogue = epilogue;
  size_t dims = result.rank() - 2;
  Shape batch(result.shape.begin(), result.shape.begin() + static_cast<int64_t>(dims));
  problem.batch = product(batch);
  problem.queries = result.shape[dims];
  problem.keys = operands[1].shape[operands[1].rank() - 2];
  problem.width = *operands[0].shape.back().constant();
  problem.value_width = *operands[2].shape.back().constant();
  problem.scale =
      attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(problem.width));
  problem.causal = attributes.causal;
  problem.causal_by_sum = attributes.causal_by_sum;
  problem.empty_is_nan = attributes.empty_is_nan;
  auto place = [&](size_t i) {
    size_t own = operands[i].rank() - 2;
    bool shared = attributes.grouped && i > 0 && own > 0;
    Dim heads = shared ? floor_divide(operands[0].shape[own - 1], operands[i].shape[own - 1]) : Dim(1);
    return place_matrix(operands[i], batch, heads);
  };
  problem.query = place(0);
  problem.key = place(1);
  problem.value = place(2);
  if (operands.size() > 3) {
    problem.mask = place_mask(operands[3], batch);
    problem.mask_is_bool = operands[3].dtype == DType::kBool;
  }
  return problem;
}

PlacedAttention place_attention(Scaffold& scaffold, const AttentionProblem& problem) {
  auto place = [&](const MatrixOperand& operand, size_t i) {
    return place_at_batch(scaffold, operand, problem.operands[i], scaffold.buffers[i]);
  };
  PlacedAttention placed{place(problem.query, 0), place(problem.key, 1), place(problem.value, 2), {}};
  if (problem.mask) placed.mask = place(*problem.mask, 3);
  return placed;
}

TemplateKernel begin_attention_plan(const AttentionProblem& problem, std::string_view name) {
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(problem.epilogue, problem.operands, problem.result.shape);
  plan.key =
      fmt::format("{} batch {} queries {} starts {} {} {} scale {} causal {} {} empty_is_nan {}", name,
                  problem.batch.to_string(), problem.queries.to_string(), problem.query.start.to_string(),
                  problem.key.start.to_string(), problem.value.start.to_string(), problem.scale,
                  problem.causal, problem.causal_by_sum, problem.empty_is_nan) +
      describe_problem(problem.operands, problem.epilogue, plan.launch.symbols, problem.symbols);
  return plan;
}

void begin_attention_kernel(Scaffold& scaffold, EpilogueFunction& epilogue, const AttentionProblem& problem,
                            const std::vector<std::string>& arguments) {
  size_t operands = problem.operands.size();
  scaffold.load_arguments(operands + problem.epilogue.buffers.size() - 1, arguments);
  epilogue.prepare(scaffold.builder, scaffold.dims, std::span(scaffold.buffers).subspan(operands));
}

llvm::Value* factor_of_sum(llvm::IRBuilder<>& builder, llvm::Value* total, const AttentionProblem& problem) {
  llvm::Value* one = llvm::ConstantFP::get(total->getType(), 1);
  if (!problem.empty_is_nan) {
    llvm::Value* none = builder.CreateFCmpOEQ(total, llvm::ConstantFP::get(total->getType(), 0));
    total = builder.CreateSelect(none, one, total);
  }
  return builder.CreateFDiv(one, total);
}

llvm::Value* hidden_by_sum(Builder& builder, llvm::Value* score, llvm::Value* shown) {
  llvm::Value* zero = llvm::Constant::getNullValue(score->getType());
  llvm::Value* none = llvm::ConstantFP::getInfinity(score->getType(), true);
  return builder.CreateFAdd(score, builder.CreateSelect(shown, zero, none));
}

llvm::Value* hidden_by_order(Builder& builder, llvm::Value* score, llvm::Value* shown,
                             const AttentionProblem& problem) {
  if (problem.causal_by_sum) return hidden_by_sum(builder, score, shown);
  return builder.CreateSelect(shown, score, llvm::ConstantFP::getInfinity(score->getType(), true));
}

llvm::Value* may_skip_keys(Scaffold& scaffold, const AttentionProblem& problem, const PlacedAttention& placed,
                           const HiddenKeys& hidden) {
  Builder& builder = scaffold.builder;
  const auto are_small = [&](const PlacedMatrix& rows, llvm::Value* first, llvm::Value* end, int64_t width,
                             double limit) {
    return are_below(scaffold, {rows, problem.operands[0].dtype, first, end, width, hidden.lanes}, limit);
  };
  llvm::Value* skips = are_small(placed.value, hidden.first, hidden.keys, problem.value_width, INFINITY);
  if (!problem.causal_by_sum) return skips;
  // Sums of so large products do not overflow.
  const double most = std::sqrt(1e37 / (static_cast<double>(problem.width) * std::max(problem.scale, 1.0)));
  skips = builder.CreateAnd(skips, are_small(placed.key, hidden.first, hidden.keys, problem.width, most));
  return builder.CreateAnd(skips,
                           are_small(placed.query, scaffold.number(0), hidden.queries, problem.width, most));
}

TemplateKernel plan_attention(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Attention& attributes, const loops::Kernel& epilogue,
                              const SymbolTable& symbols, const Target& target) {
  AttentionProblem problem = make_attention_problem(operands, result, attributes, epilogue, symbols);
  bool few = range_of(problem.queries, symbols).max <= kFewQueries;
  return few ? plan_attention_stream(std::move(problem), target)
             : plan_attention_blocks(std::move(problem), target);
}

}  // namespace ingot::core::cpu
