// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <algorithm>

#include "passes/passes.h"

namespace ingot::core {
namespace {

Graph decompose_all(Graph graph) { return decompose(std::move(graph)); }

constexpr PassRow kRows[] = {
    {"eliminate_dead_code", eliminate_dead_code, 0, false, "front ends leave nodes that nobody reads"},
    {"simplify", simplify, 1, false, "brings what models spell differently into one form"},
    {"fold_constants", fold_constants, 1, false, "numbers that rules look for may be computed"},
    {"recognize_compositions", recognize_compositions, 1, true,
     "behind simplify: one form of each is enough"},
    {"fold_batch_norm", fold_batch_norm, 1, true, "before decompose, which takes batch_norm apart"},
    {"decompose", decompose_all, 0, false, "backends know only what cannot be taken apart"},
    {"simplify", simplify, 1, false, "decompositions do not look at their neighbours"},
    {"fold_constants", fold_constants, 1, false, "and compute with numbers"},
    {"reinplace_state", reinplace_state, 1, false, "when all reads of state are known"},
    {"eliminate_common_subexpressions", eliminate_common_subexpressions, 1, false,
     "once equal things have one form, and before anything is grouped"},
    {"eliminate_dead_code", eliminate_dead_code, 0, false, "the last rewriting leaves dead nodes"},
};

}  // namespace

std::span<const PassRow> pipeline() { return kRows; }

const PassRow* find_pass(std::string_view name) {
  const auto row = std::ranges::find(pipeline(), name, &PassRow::name);
  return row == pipeline().end() ? nullptr : &*row;
}

}  // namespace ingot::core
