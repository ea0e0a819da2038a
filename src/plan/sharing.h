// SPDX-License-Identifier: Apache-2.0
// Which values share one block of memory: views, in-place updates, results that reuse a dying operand, and
// values computed directly in an output or a state. Decided before placement, since sharing lowers the bound
// itself.
//
//   each input, weight, constant and state has its own block
//   for each step in order, for each result:
//     an in-place result takes the block of operand 0 if that dies here, otherwise starts as a copy of it
//     another result takes the block of an operand that dies here and may be overwritten, or else a new block
//   a view is an offset into its root's block, and needs no step
//   each output turns its block into an output, or is copied at the end
//   each new state is computed in the state's block if the old value is dead by then, or copied at the end
#pragma once

#include <climits>
#include <map>
#include <optional>
#include <vector>

#include "ops/alias.h"
#include "plan/plan_input.h"

namespace ingot::core {

constexpr int kEnd = INT_MAX;  // as a step: after all of them

// One block; `first` and `last` are the steps of its first write and last use.
struct Memory {
  Storage storage = ArenaStorage{};  // an alias is of a memory
  TensorType type;
  int first = INT_MAX, last = -1;
  bool on_host = false;  // made by a step of the host, beside a device
};

struct Location {
  size_t memory;
  Dim offset = 0;  // bytes
};

// A copy that the plan inserts before step `before`, or at the end (kEnd). Source and destination are values
// or, if null, whole memories.
struct PlannedCopy {
  int before;
  const Value* from;
  const Value* to;
  size_t from_memory = 0, to_memory = 0;
};

class Sharing {
 public:
  explicit Sharing(const PlanInput& input);

  const std::vector<Memory>& memories() const { return memories_; }
  const std::vector<PlannedCopy>& copies() const { return copies_; }
  const std::vector<const Value*>& located() const {
    return order_;
  }  // all values, in order of first location
  Location location(const Value* value) const { return locations_.at(value); }
  // The values of the graph's `state` nodes, in order: state k of the program.
  const std::vector<const Value*>& states() const { return states_; }

 private:
  void collect_uses();
  void add_sources();
  void place_results_of(int index);
  void place_result(int index, const Value* result);
  void bind_outputs();
  void bind_updates();
  bool computed_in_state(const Update& update);

  Location locate(const Value* value);
  size_t add_memory(Memory memory, const Value* value);
  void share(const Value* value, const Location& location);
  bool fills(const Value* value, size_t memory) const;
  bool dies(const Value* operand, int index) const;
  bool is_on_host(int index) const;
  bool may_take_over(const Value* operand, const Value* result, int index);
  const Value* operand_to_take_over(const Value* result, int index);

  const PlanInput& input_;
  AliasOffsets aliases_;
  std::map<const Value*, int> last_use_;  // by view root
  std::map<const Value*, const Value*>
      updates_;  // final values of states, through in-place updates -> the state
  std::vector<Memory> memories_;
  std::map<const Value*, Location> locations_;
  std::vector<const Value*> order_;
  std::vector<const Value*> states_;
  std::vector<PlannedCopy> copies_;
};

}  // namespace ingot::core
