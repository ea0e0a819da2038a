// SPDX-License-Identifier: Apache-2.0
// Rows of a product's first operand in shared memory: copied there, or computed there by the nodes before the
// product. Products of few rows alone have them there whole.
#pragma once

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/template_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// A kernel of one stage that stores the operand; null: it is in memory.
using Prologue = const loops::Kernel*;

// fill_rows(to, batch, first_row, x): kRows rows of kDepth elements, by `threads` threads. Copies may be
// pending (wait_for_copies). Rows beyond the last are zero where they are copied, else the last again.
void write_fill_rows(const Node& node, const ProductShape& shape, Prologue prologue, int threads,
                     TemplateText& out);

// The buffers that a prologue reads: fields of Operands, "const u16* p1; ", and their values, ", p1".
std::string prologue_fields(Prologue prologue);
std::string prologue_values(Prologue prologue);
// Statements of a function of Operands that name them as the prologue does: "const u16* const b1 = x.p1;".
std::string prologue_buffers(Prologue prologue);
// The kernel's arguments for them, "const u16* p1, ".
std::string prologue_arguments(Prologue prologue);

}  // namespace ingot::core::cuda
