// SPDX-License-Identifier: Apache-2.0
// Branches and loops.
#include <array>

#include "importers/onnx/converters/converters.h"

namespace ingot::core::onnx {
namespace {

// Only the branch that is taken exists for us.
void convert_if(Call& call) {
  const std::optional<Sizes> condition = call.sizes(0);
  if (!condition || !condition->is_constant() || condition->elements.size() != 1)
    refuse("the condition is not a constant, and engines have no branches");
  const bool is_true = condition->elements[0] != Dim(0);
  call.scope().run(call.attribute_graph(is_true ? "then_branch" : "else_branch"), call.node().outputs);
}

void refuse_loop(Call&) { refuse("engines have no loops"); }

constexpr auto kControl = std::to_array<Converter>({
    {"If", convert_if},
    {"Loop", refuse_loop},
    {"Scan", refuse_loop},
});

}  // namespace

std::span<const Converter> control_converters() { return kControl; }

}  // namespace ingot::core::onnx
