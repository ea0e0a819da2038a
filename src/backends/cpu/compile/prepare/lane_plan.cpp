// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/prepare/lane_plan.h"

#include <algorithm>

#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::cpu {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;
using loops::stride_along;

constexpr int64_t kGrainPoints = 1024;             // elements that are worth a part of their own
constexpr int64_t kWholeRange = int64_t{1} << 40;  // a grain that leaves a single part

bool has_inner_loops(const Kernel& kernel) {
  return std::ranges::any_of(
      kernel.stages, [](const Stage& stage) { return !stage.loops.empty() || !stage.reduce.empty(); });
}

const Loop* innermost(const Stage& stage) {
  if (!stage.reduce.empty()) return &stage.reduce.back();
  return stage.loops.empty() ? nullptr : &stage.loops.back();
}

void visit_accesses(const Kernel& kernel, const Stage& stage,
                    const std::function<void(const Dim& offset)>& function) {
  const auto at = [&](int buffer) -> const loops::Buffer& {
    return kernel.buffers[static_cast<size_t>(buffer)];
  };
  visit(stage.value, [&](const Expr& node) {
    if (node->kind == ExprNode::Kind::kLoad) function(element_offset(at(node->buffer), node->index));
  });
  if (stage.store) function(element_offset(at(stage.store->buffer), stage.store->index));
}

// Whether more accesses are contiguous along the stages' own loops than along the innermost parallel one.
bool prefers_rows(const Kernel& kernel) {
  if (kernel.parallel.empty()) return true;
  const std::string& point = kernel.parallel.back().variable;
  int along_rows = 0, along_points = 0;
  for (const Stage& stage : kernel.stages) {
    const Loop* inner = innermost(stage);
    visit_accesses(kernel, stage, [&](const Dim& offset) {
      along_points += stride_along(offset, point) == Dim(1);
      along_rows += inner != nullptr && stride_along(offset, inner->variable) == Dim(1);
    });
  }
  const auto extent = kernel.parallel.back().extent.constant();
  return along_rows >= along_points || (extent && *extent < 4);
}

// Local rows are arrays of vectors, so a row index may not depend on the lane.
bool locals_follow_lanes(const Kernel& kernel, const std::string& variable) {
  bool follows = false;
  for (const Stage& stage : kernel.stages) {
    visit(stage.value, [&](const Expr& node) {
      if (node->kind != ExprNode::Kind::kLocal) return;
      for (const Dim& dim : node->index) {
        for (const std::string& symbol : dim.symbols()) {
          const bool bound = std::ranges::any_of(
              stage.bindings, [&](const auto& binding) { return binding.symbol == symbol; });
          follows = follows || bound || symbol == variable;
        }
      }
    });
  }
  return follows;
}

bool is_packed(DType dtype) { return bit_width(dtype) < 8; }

struct Facts {
  int widest = 8;  // bits of the widest arithmetic dtype that is loaded or computed
  int narrowest_stored = 64;
  int nodes = 0;
  bool writes_packed = false;
  bool quantizes = false;  // makes bytes of wider numbers
};

Facts facts_of(const Kernel& kernel) {
  Facts facts;
  for (const loops::Buffer& buffer : kernel.buffers) {
    facts.narrowest_stored = std::min(facts.narrowest_stored, bit_width(buffer.type.dtype));
    facts.writes_packed =
        facts.writes_packed || (buffer.access != loops::Access::kRead && is_packed(buffer.type.dtype));
  }
  for (const Stage& stage : kernel.stages) {
    facts.widest = std::max(facts.widest, bit_width(stage.value->dtype));
    visit(stage.value, [&](const Expr& node) {
      ++facts.nodes;
      const bool counts = node->kind == ExprNode::Kind::kLoad || is_floating(node->dtype);
      if (counts) facts.widest = std::max(facts.widest, bit_width(node->dtype));
      facts.quantizes =
          facts.quantizes || (node->kind == ExprNode::Kind::kConvert && is_integer(node->dtype) &&
                              bit_width(node->dtype) == 8 && node->operands[0]->dtype == DType::kI32);
    });
  }
  return facts;
}

// Long chains of arithmetic hide their own latency; short ones need several registers in flight. Four
// registers of f32 make one of bytes.
int registers_in_flight(const Facts& facts) {
  return facts.nodes <= 12 || (facts.quantizes && facts.nodes <= 60) ? 4 : facts.nodes <= 40 ? 2 : 1;
}

// Uses several registers only if they fill the row, or nearly.
int lanes_for(int native, int registers, std::optional<int64_t> extent) {
  int lanes = native * registers;
  while (extent && lanes > native && *extent % lanes != 0 && *extent < 8 * lanes) lanes /= 2;
  return lanes;
}

// Short rows are kept whole, so that no part starts in the middle of one.
int64_t grain_of_points(const Kernel& kernel, int lanes) {
  const auto row = kernel.parallel.back().extent.constant();
  if (row && *row > 0 && *row < kGrainPoints) {
    const int64_t rows = (kGrainPoints + *row - 1) / *row;
    return rows * *row;
  }
  return std::max<int64_t>(kGrainPoints, lanes);
}

int64_t grain_of_rows(const Kernel& kernel) {
  int64_t work = 1;  // elements per point
  for (const Stage& stage : kernel.stages) {
    int64_t elements = 1;
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const Loop& loop : *loops) elements *= loop.extent.constant().value_or(kGrainPoints);
    }
    work = std::max(work, elements);
  }
  return std::max<int64_t>(1, kGrainPoints / work);
}

}  // namespace

Dim element_offset(const loops::Buffer& buffer, const std::vector<Dim>& index) {
  return storage_offset(buffer.type.layout, buffer.type.shape, index);
}

SymbolTable all_ranges(const Kernel& kernel) {
  SymbolTable ranges = kernel.symbols;
  const auto add = [&](const std::string& name, const Dim& limit) {
    const int64_t highest = range_of(limit, kernel.symbols).max;
    const DimRange range{0, highest == INT64_MAX ? highest : std::max<int64_t>(highest - 1, 0)};
    const auto [place, fresh] = ranges.try_emplace(name, SymbolInfo{.range = range});
    if (!fresh)
      place->second.range.max =
          std::max(place->second.range.max, range.max);  // several stages use the same name
  };
  for (const Loop& loop : kernel.parallel) add(loop.variable, loop.extent);
  for (const Stage& stage : kernel.stages) {
    for (const Loop& loop : stage.loops) add(loop.variable, loop.extent);
    for (const Loop& loop : stage.reduce) add(loop.variable, loop.extent);
    for (const loops::Binding& binding : stage.bindings) add(binding.symbol, binding.limit);
  }
  return ranges;
}

LanePlan plan_lanes(const Kernel& kernel, CpuFeatures features) {
  LanePlan plan;
  const Facts facts = facts_of(kernel);
  const bool rows = has_inner_loops(kernel) && prefers_rows(kernel);
  if (!rows && !kernel.parallel.empty()) plan.variable = kernel.parallel.back().variable;
  const bool scalar = facts.writes_packed ||
                      (!plan.variable.empty() && locals_follow_lanes(kernel, plan.variable)) ||
                      (plan.variable.empty() && !has_inner_loops(kernel));
  if (!scalar) {
    const bool masks = features.has(CpuFeature::kX86V4), is_narrow = features.has(CpuFeature::kAarch64);
    const int native = (masks ? 512 : is_narrow ? 128 : 256) / facts.widest;
    const bool along_points = !plan.variable.empty();
    const auto extent = along_points ? kernel.parallel.back().extent.constant() : std::nullopt;
    plan.lanes = lanes_for(native, registers_in_flight(facts), extent);
    // AVX2 has masked moves of 32 and 64 bits only, NEON none.
    plan.tail_lanes = masks || (!is_narrow && facts.narrowest_stored >= 32) ? native : 1;
  }
  if (facts.writes_packed) {
    plan.grain = kWholeRange;  // neighbours share bytes
  } else {
    plan.grain = plan.variable.empty() ? grain_of_rows(kernel) : grain_of_points(kernel, plan.lanes);
  }
  return plan;
}

}  // namespace ingot::core::cpu
