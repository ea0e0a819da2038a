// SPDX-License-Identifier: Apache-2.0
#include "loops/index_program.h"

#include <algorithm>

namespace ingot::core::loops {
namespace {

// Wraps instead of failing: the interpreter checks each index against its buffer anyway.
int64_t apply(Dim::Kind kind, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (kind) {
    case Dim::Kind::kAdd:
      return static_cast<int64_t>(ua + ub);
    case Dim::Kind::kMultiply:
      return static_cast<int64_t>(ua * ub);
    case Dim::Kind::kMaximum:
      return std::max(a, b);
    case Dim::Kind::kMinimum:
      return std::min(a, b);
    default:
      break;
  }
  if (b == 0) return 0;
  const bool away = a % b != 0 && (a % b < 0) != (b < 0);
  return kind == Dim::Kind::kFloorDivide ? a / b - away : a % b + (away ? b : 0);
}

}  // namespace

void IndexProgram::append(const Dim& dim, Slots& slots) {
  if (dim.is_constant()) return steps_.push_back({Dim::Kind::kConstant, *dim.constant()});
  if (dim.is_symbol()) return steps_.push_back({Dim::Kind::kSymbol, slots.slot(dim.symbol_name())});
  append(dim.operands()[0], slots);
  for (const Dim& operand : dim.operands().subspan(1)) {
    append(operand, slots);
    steps_.push_back({dim.kind()});
  }
}

int64_t IndexProgram::run(const std::vector<int64_t>& slots) const {
  stack_.clear();
  for (const Step& step : steps_) {
    if (step.kind == Dim::Kind::kConstant) {
      stack_.push_back(step.value);
    } else if (step.kind == Dim::Kind::kSymbol) {
      stack_.push_back(slots[static_cast<size_t>(step.value)]);
    } else {
      const int64_t b = stack_.back();
      stack_.pop_back();
      stack_.back() = apply(step.kind, stack_.back(), b);
    }
  }
  return stack_.back();
}

}  // namespace ingot::core::loops
