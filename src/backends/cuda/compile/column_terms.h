// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/compile/row_statistics.h"
#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {

// What turns a sum of products into an element of a contraction's result and depends on the column alone: the
// bias, and the sums of the weight's rows behind a norm. A thread loads them for its groups of elements.
struct ColumnTerms {
  const Node& node;
  std::string_view operands;  // the names of the node's operands begin with it,
  std::string_view prefix;    // those of its variables with this: twins are in one kernel

  bool has_bias() const;
  bool has_sums() const;
  bool has_any() const { return has_bias() || has_sums(); }

  void write_declarations(int wide, TemplateText& out) const;
  void write_loads(TemplateText& out) const;  // of the n-th group, from `column` on
  void write_takes(TemplateText& out) const;  // as write_take_loads
  void write_sum(const RowNorms& norms,
                 TemplateText& out) const;  // {prefix}sum, of products, becomes the element
  std::string alignment_text() const;       // " && is_aligned(...)"
};

}  // namespace ingot::core::cuda
