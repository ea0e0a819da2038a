// SPDX-License-Identifier: Apache-2.0
// The compiler's interface to a backend. Backends are constant and stateless: everything they need is passed
// in.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/program.h"
#include "loops/kernel.h"
#include "ops/fusion_answer.h"
#include "ops/layout_request.h"
#include "ops/ops.h"
#include "ops/precision_choice.h"
#include "passes/pass.h"

namespace ingot::core {

// How a backend runs a node. Slow: it runs, but a peer (torch on the same machine) is predicted to be faster;
// both times are of the whole node at typical sizes, on one thread.
struct Support {
  enum class Answer : uint8_t { kFast, kSlow, kNo } answer = Answer::kFast;
  std::string reason;  // why it is slow or unsupported, for reports
  double own_ns = 0, peer_ns = 0;
  bool runs_on_host = false;  // a routine of the host computes it, whatever the backend's place
};

// An entry of the option backend_of: nodes by a pattern of names, or of operators, and who runs them.
struct BackendChoice {
  std::string pattern, backend;
};

// The target of a build. `text` is part of cache keys: equal texts mean equal targets.
struct Target {
  std::string backend = "cpu";
  std::string device;  // in the canonical form of the backend's `device`: "x86-64-v4+vnni"
  // What runs on the host beside a device, in the form of the CPU's backend; "": its compiler is not here.
  std::string host_device;
  int level = 3;  // optimization level 0..5
  enum class Numerics { kStrict, kDefault, kFast } numerics = Numerics::kDefault;
  std::vector<DType> precisions;            // in which contractions of f32 may be computed too, sorted
  std::vector<std::string> keep_precision;  // patterns of names of nodes that stay as they are
  std::vector<BackendChoice> backend_of;    // the first that fits a node counts
  bool times_tactics() const { return level >= 4; }
  std::string text() const;
};

// A kernel that runs a region.
struct LoweredKernel {
  std::string tactic;  // which of the ways to compute the step, for people; "": there is one
  Launch launch;       // its kernel binary is found by the key
  std::string key;     // canonical text of everything that determines the code
  // Generates the code; called once per distinct key, possibly on another thread.
  std::function<Image()> compile;
  bool keeps_special_values = true;  // infinities and NaN come out where the definition has them
};

// What a node was lowered to, ready for a program: a kernel, or a routine of the host. Control flow is the
// same for all backends: its graphs become programs of their own.
struct LoweredStep {
  std::string name;
  std::vector<Value*> arguments;  // of the region node: operands and results, in the kernel's order
  std::vector<bool> writes;       // one per argument
  // Operands (positions in `arguments`) whose memory the only result may reuse: each element is read only
  // before the result's same element is stored, and no element is stored twice. In-place updates (kInPlace)
  // need no entry.
  std::vector<uint32_t> may_overwrite;
  std::vector<std::pair<std::string, Value*>> binds;  // symbol <- the i64 scalar result that the host reads
  std::variant<LoweredKernel, RoutineStep, BranchStep, LoopStep> action;
  // What else computes the same from the same arguments: the predicted faster ones first. Only for targets
  // that time them.
  std::vector<LoweredKernel> others;
  // The kernel by which GPUs that reach each other's memory do a collective themselves.
  std::optional<LoweredKernel> by_peers;
  std::string site;  // set by the compiler: the digest of what is computed, where there are others

  LoweredKernel* kernel() { return std::get_if<LoweredKernel>(&action); }
  const LoweredKernel* kernel() const { return std::get_if<LoweredKernel>(&action); }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view generator() const = 0;  // the code generator and its version: part of keys
  // ", NAME VERSION" for each library here that steps of the target may call: part of keys of engines.
  virtual std::string libraries(const Target&) const { return {}; }
  // The canonical form of a device name; "": the device of this machine, or the most common one. UserError if
  // there is no such device.
  virtual std::string device(std::string_view words) const = 0;
  // The place of its values: the host, or device 0 of the engine.
  virtual Place place() const { return {}; }
  // For one node of the graph after the stage `adapt`, at typical sizes of its symbols.
  virtual Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const = 0;
  // A rough prediction of how long a node takes that it supports, for the choice between backends.
  virtual double predicted_ns(const Node&, const SymbolValues&, const Target&) const { return 0; }
  // The passes that only this backend has: rows of the pass table (passes/pipeline.h).
  virtual std::vector<Pass> passes(const Target&) const { return {}; }
  // The dtypes of a contraction of f32, of those that the target allows.
  virtual PrecisionChoice precision(const PrecisionSite&, const Target&) const {
    return {.reason = "this backend computes in the model's dtypes"};
  }
  // Of which number the channels or the depth of a contraction must be a multiple for u8 to be multiplied by
  // i8 faster than f32; 0: it is not.
  virtual int64_t quantized_multiple(const Node&, const Target&) const { return 0; }
  virtual LayoutRequest layouts(const Node& node, const Target& target) const = 0;
  // Whether `consumer` (elementwise, or a view of one of `region`'s results) may join the fused node
  // `region`, and whether `producer` may be computed inside it.
  virtual FusionAnswer may_fuse_consumer(const Node& region, const Node& consumer,
                                         const Target& target) const = 0;
  virtual FusionAnswer may_fuse_producer(const Node& region, const Node& producer,
                                         const Target& target) const = 0;
  // Whether `producer` may be computed inside it, and its result be one of the region's, which others read.
  virtual bool may_keep_producer(const Node&, const Node&, const Target&) const { return false; }
  // Whether one kernel may compute both contractions, whose results elementwise nodes join.
  virtual FusionAnswer may_fuse_twin(const Node&, const Node&, const Target&) const {
    return {false, "no kernel template computes two contractions"};
  }
  // The steps, in order, that compute a node of the final graph (fused or single).
  virtual std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                         const Target& target) const = 0;
  // The kernel that does what LoweredStep::by_peers of `reduction` does, and then what the only kernel of
  // `next` does, which reads the reduced values as the operands at `reduced`. `symbols`: of `next`.
  virtual std::optional<LoweredKernel> lower_with_next(const Node& /*reduction*/, const Node& /*next*/,
                                                       std::span<const Value* const> /*reduced*/,
                                                       const SymbolTable& /*symbols*/,
                                                       const Target& /*target*/) const {
    return std::nullopt;
  }
};

}  // namespace ingot::core
