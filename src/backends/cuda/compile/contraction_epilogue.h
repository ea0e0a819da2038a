// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/compile/epilogue_reads.h"
#include "backends/cuda/compile/product_prologue.h"
#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/row_statistics.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/twin.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// `epilogue`: as for `write_contraction`, its functions expanded; `wide`: contiguous elements of a row that a
// thread finishes at a time, 8 or 1 (kWide).
struct EpilogueSite {
  const Node& node;
  const ProductShape& shape;
  const loops::Kernel& epilogue;
  const RowNorms& norms;
  int wide;
  TemplateText& out;
  Prologue prologue = nullptr;
  Twin twin = {};
};

// The statements that begin a tile, where `kind` is Whole or Checked as below: they load the first of what
// the epilogue reads besides sums, or leave it to begin_epilogue(), which is called when the kernel before is
// complete. `columns_are_weights`: bias and sums of columns are.
void write_epilogue_loads(const EpilogueSite& site, bool columns_are_weights);

// The statements that end it: they apply the epilogue to the accumulators of the tile and store the results.
void write_contraction_epilogue(const EpilogueSite& site);

// The same for eight contiguous elements of a row that all exist, of a number of columns that is a multiple
// of eight: load_eight(n, row, column, kind) what they read besides sums, for n below kLoads;
// finish_eight(n, row, column, sums, kind) for n below kAtOnce. `kind`: Whole, where epilogue_alignment() is
// true, or Checked. kAtOnce and kLoads are constants that exist before them. Without norms.
void write_epilogue_functions(const EpilogueSite& site);

// After these: take_loads(s), by which what was loaded for kAtOnce groups behind s others is what they
// finish.
void write_take_loads(const EpilogueSite& site);

// Whether eights are always aligned to 16 bytes if buffers are, and whether all of them exist too; " && ...":
// whether buffers are aligned.
bool has_whole_eights(const EpilogueSite& site);
bool has_whole_tiles(const EpilogueSite& site);
std::string epilogue_alignment(const EpilogueSite& site);

// The kernel's arguments: pointers to the operands, the epilogue's and the prologue's buffers and the twin's
// operands, and symbols.
void write_operand_arguments(const EpilogueSite& site);

}  // namespace ingot::core::cuda
