// SPDX-License-Identifier: Apache-2.0
// The routines of routines.def. Operands and results are documented at the op record of the same name.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

#include "routines/routine.h"

namespace ingot::core::routines {

#define ROUTINE(name) void name(const RoutineCall& call);
#include "routines/routines.def"
#undef ROUTINE

const PlainValue& find_attribute(const RoutineCall& call, std::string_view name);
[[noreturn]] void reject_attribute(std::string_view name, const PlainValue& value);
// The value of an attribute: bool, int64_t, double or std::string. UserError INGOT-U330 if the call lacks it,
// U331 if it is of another kind: an engine file may claim anything.
template <typename Kind>
const Kind& attribute(const RoutineCall& call, std::string_view name) {
  const PlainValue& value = find_attribute(call, name);
  const Kind* found = std::get_if<Kind>(&value);
  if (found == nullptr) reject_attribute(name, value);
  return *found;
}

// UserError INGOT-U332 unless `fits`: the tensors are not what the routine accepts. The operators check this,
// but an engine file may claim anything, and sizes known only at run time may be inconsistent.
void require_fit(bool fits, std::string_view routine);

// Items that are not initialized, in the working memory of a call: one object at a time.
template <typename Item>
  requires std::is_trivially_copyable_v<Item>
class WorkingItems {
 public:
  WorkingItems(const RoutineCall& call, size_t count)
      : owned_(call.memory == nullptr ? std::make_unique_for_overwrite<Item[]>(count) : nullptr),
        items_(call.memory == nullptr ? owned_.get() : reserve(*call.memory, count), count) {}
  std::span<Item> items() const { return items_; }

 private:
  static Item* reserve(const WorkingMemory& memory, size_t count) {
    return reinterpret_cast<Item*>(memory.reserve(memory.user, count * sizeof(Item)));
  }

  std::unique_ptr<Item[]> owned_;
  std::span<Item> items_;
};

// A tensor viewed as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(std::span<const int64_t> shape, int64_t axis);
};

}  // namespace ingot::core::routines
