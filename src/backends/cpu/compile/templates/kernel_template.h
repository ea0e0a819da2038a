// SPDX-License-Identifier: Apache-2.0
// Kernel templates: hand-written generators for contractions, where loop order determines the speed.
// Everything else is generated from Loop IR.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/compile/templates/panel_tactic.h"
#include "backends/cpu/kernel_abi.h"

namespace ingot::core::cpu {

// The result of a kernel template: a LoweredStep without the graph's values. The kernel's buffers are the
// node's operands (those that are present), then the epilogue's except its first.
struct TemplateKernel {
  KernelLaunch launch;
  std::string key;     // canonical text of everything that determines the code
  std::string tactic;  // LoweredKernel::tactic
  std::function<Image()> compile;
  bool keeps_special_values = true;  // LoweredKernel::keeps_special_values
};

// Whether a kernel template supports a node, and why not.
struct Fit {
  bool yes = true;
  std::string reason;
};

// A kernel template: one way to compute an op.
//
// The epilogue is a kernel over the contraction's result index: its parallel loops are the dims of the
// result, in order, and its stages are elementwise without loops of their own; stages without a store pass
// values to later ones. Buffer 0 is the contraction's result, loaded at exactly that index; the others are
// fused operands, and all results. See epilogue.h.
struct KernelTemplate {
  const Op* op;
  Fit (*supports)(const Node& node, const Target& target);
  LayoutRequest (*layouts)(const Node& node, const Target& target);
  // `node` has the layouts that `layouts` requested. Templates without tactics ignore `tactic`.
  TemplateKernel (*plan)(const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols,
                         const Target& target, const PanelTactic& tactic);
  // Null: there is one. Else the default, and others in the order in which to try them.
  std::vector<PanelTactic> (*tactics)(const Node& node, const Target& target) = nullptr;
};

const KernelTemplate* find_template(const Op& op);  // null if there is none

// Whether a template multiplies the floats of `node` as numbers of `dtype`.
bool has_template_of(const Node& node, DType dtype, const Target& target);
// Whether a template multiplies u8 by i8 of the shapes that `node` has: a linear layer, a matmul or a
// convolution, of integers or of floats, whose channels or depth are padded to a multiple.
bool has_integer_template(const Node& node, const Target& target, int64_t multiple = 1);

// Of which number the channels of a convolution of halves must be a multiple, so that they are multiplied
// without conversion; 1: they are, or no channels would help.
int64_t channel_multiple(const Node& convolution, const Target& target);

// The kernel template for `node` in its current form: null if there is none, if none supports it, or if its
// operands and results do not have the requested layouts.
const KernelTemplate* find_ready_template(const Node& node, const Target& target);

}  // namespace ingot::core::cpu
