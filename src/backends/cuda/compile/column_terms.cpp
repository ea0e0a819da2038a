// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/column_terms.h"

#include "backends/cuda/compile/type_text.h"
#include "ops/normalization.h"
#include "ops/ops.h"

namespace ingot::core::cuda {

namespace {
constexpr size_t kBias = 2;
}  // namespace

bool ColumnTerms::has_bias() const { return node.op != &ops::matmul && node.has_operand(kBias); }
bool ColumnTerms::has_sums() const {
  return node.op == &ops::normalized_linear && node.has_operand(ops::kNormalizedSums);
}

void ColumnTerms::write_declarations(int wide, TemplateText& out) const {
  if (has_sums()) out.line("{} {}column_sums[kLoads];\n", group_of(DType::kF32, wide), prefix);
  if (has_bias()) out.line("{} {}bias[kLoads];\n", group_of(node.operand_type(kBias).dtype, wide), prefix);
}

void ColumnTerms::write_loads(TemplateText& out) const {
  if (has_sums())
    out.line("load_group(kind, {}column_sums[n], {}3 + column, x.columns - column);\n", prefix, operands);
  if (has_bias())
    out.line("load_group(kind, {}bias[n], {}2 + column, x.columns - column);\n", prefix, operands);
}

void ColumnTerms::write_takes(TemplateText& out) const {
  if (has_sums()) out.line("{0}column_sums[n] = {0}column_sums[(1 + s) * kAtOnce];\n", prefix);
  if (has_bias()) out.line("{0}bias[n] = {0}bias[(1 + s) * kAtOnce];\n", prefix);
}

void ColumnTerms::write_sum(const RowNorms& norms, TemplateText& out) const {
  const std::string sum = fmt::format("{}sum", prefix);
  const std::string column_sum = has_sums() ? fmt::format("{}column_sums[n].each[k]", prefix) : "0";
  if (norms.normalized)
    out.line("{0} = ({0} - statistics{1}[n].first * {2}) * statistics{1}[n].second;\n", sum,
             *norms.normalized, column_sum);
  else if (node.op == &ops::normalized_linear)
    out.line("{0} = normalized({0}, moments_in(shared) + (int)(row - first_row) * 2, {1});\n", sum,
             column_sum);
  if (has_bias())
    out.line("{0} = add_({0}, number_of<{1}>({2}bias[n], k));\n", sum,
             node.operand_type(kBias).dtype == DType::kBF16, prefix);
}

std::string ColumnTerms::alignment_text() const {
  std::string text;
  if (has_bias()) text += fmt::format(" && is_aligned({}{})", operands, kBias);
  if (has_sums()) text += fmt::format(" && is_aligned({}3)", operands);
  return text;
}

}  // namespace ingot::core::cuda
