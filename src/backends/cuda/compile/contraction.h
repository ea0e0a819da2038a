// SPDX-License-Identifier: Apache-2.0
// Matrix products on tensor cores, with their epilogues: linear, matmul and convolutions of f16, bf16
// and f32.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/compile/product_prologue.h"
#include "backends/cuda/compile/product_tactic.h"
#include "backends/cuda/compile/row_statistics.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/twin.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

struct ContractionSite {
  const Node& node;
  Twin twin;
  bool b_is_weight;          // operand 1 exists before the program runs, as does the twin's,
  bool columns_are_weights;  // and so do those after it
  bool rounds_to_tf32;       // f32 operands, to 11 significant bits
  bool exact_functions;      // in epilogues of halves
  std::string_view architecture;
  const SymbolTable& symbols;
  RowNorms norms;
  std::optional<loops::Kernel> prologue;  // which computes operand 0: may_compute_rows() says where
};

// `epilogue` as for kernel templates of the CPU: buffer 0 is the node's result, loaded where it is stored.
// The kernel's buffers are the node's operands that are present, then those of the epilogue except its first,
// both without the twin's result, what the norms stand for and what the prologue computes; the moments that
// these are read from; the moments that it keeps; what the prologue reads; the twin's operands without its
// first.
TemplateKernel write_contraction(const ContractionSite& site, const loops::Kernel& epilogue,
                                 const ProductTactic& tactic);

// The predicted fastest first; never empty.
std::vector<ProductTactic> rank_tactics(const ContractionSite& site, const loops::Kernel& epilogue);

}  // namespace ingot::core::cuda
