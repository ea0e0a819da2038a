// SPDX-License-Identifier: Apache-2.0
// An operator is a constant record that answers questions. Passes query traits, never names.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/attribute.h"
#include "types/tensor.h"

namespace ingot::core {

namespace loops {
struct Kernel;
}
class Graph;
struct Node;
struct Value;

enum class Trait : uint32_t {
  kElementwise = 1u << 0,  // result element i depends on element i of the broadcast operands only
  kReduction = 1u << 1,    // lowers to Loop IR with reduction stages
  kView = 1u << 2,         // moves elements without computing: one elementwise stage
  kCommutative = 1u << 3,  // its two operands may be swapped
  kIdempotent = 1u << 4,   // f(f(x)) = f(x)
  kRandom = 1u << 5,       // equal nodes must not be merged
  kSideEffect = 1u << 6,   // never removed
  kSource = 1u << 7,       // no operands: weight, constant, state
  kContraction =
      1u << 8,  // sum of products with hand-written kernel templates: matmul, linear, convolution, attention
  kInPlace = 1u << 9,  // result 0 is operand 0 with some elements replaced: they share a buffer if possible
  kControlFlow = 1u << 10,  // holds graphs that run zero or more times
  kFused = 1u << 11,        // holds one graph that a backend compiles to one kernel or routine
  kKeepsOrder =
      1u << 12,  // a view whose result has the operand's elements in the same row-major order: reshape
  kBindsSize =
      1u
      << 13,  // its first attribute, a symbol, is the value of its first result, an i64 scalar, from then on
  kNarrowWeight = 1u << 14,  // operand 1, a weight, may be narrower than operand 0 if that is f32
  kCollective = 1u << 15,    // all ranks of a group run it, in the same order: has ops::Collective's fields
};

struct Traits {
  uint32_t bits = 0;
  constexpr Traits() = default;
  constexpr Traits(Trait trait) : bits(static_cast<uint32_t>(trait)) {}  // NOLINT: a trait is a set of one
  constexpr bool has(Trait trait) const { return bits & static_cast<uint32_t>(trait); }
};
constexpr Traits operator|(Traits a, Traits b) {
  Traits both;
  both.bits = a.bits | b.bits;
  return both;
}
constexpr Traits operator|(Trait a, Trait b) { return Traits(a) | Traits(b); }

// Dtypes that an operand may have.
enum class DTypeSet : uint8_t {
  kAny,
  kFloating,
  kInteger,
  kIntegerOrBool,
  kNumeric,
  kBool,
  kIndex /* i32, i64 */
};
bool contains(DTypeSet set, DType dtype);
std::string_view name(DTypeSet set);

struct Operand {
  std::string_view name = {};
  DTypeSet dtypes = DTypeSet::kAny;
  bool optional = false;  // may be null; optional operands come last
  bool variadic = false;  // zero or more; last operand only
};

// One operand of a sample call: its type and, if random data will not do, its values.
struct SampleOperand {
  TensorType type;
  double low = -2, high = 2;  // uniform range of generated values (integers: inclusive)
};
struct Sample {
  std::vector<SampleOperand> operands;
  AttributeValues attributes;
};

struct Op {
  std::string_view name = {};
  std::string_view summary = {};  // one line; a source if there is one
  std::span<const Operand> operands = {};
  AttributeSchema attributes = {};
  Traits traits = {};
  // Types of the results from operands and attributes, with symbolic dims. Throws UserError on bad shapes;
  // operand count and dtypes were checked before. The node's `results` are still empty.
  std::vector<TensorType> (*infer)(const Node& node) = nullptr;
  // Exactly one of the next three is set, except for sources, fused nodes and control flow.
  loops::Kernel (*lower)(const Node& node) = nullptr;  // buffers: operands, then results
  std::vector<Value*> (*decompose)(Graph& graph, const Node& node) = nullptr;  // appends simpler nodes
  std::string_view routine = {};                                               // name in src/routines
  std::vector<Sample> (*samples)() = nullptr;
};

}  // namespace ingot::core
