// SPDX-License-Identifier: Apache-2.0
// What the compiler asks of a backend. A backend is constant and has no state: everything it needs is passed
// in.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/program.h"
#include "loops/kernel.h"
#include "ops/layout_request.h"
#include "ops/ops.h"
#include "passes/pass.h"

namespace ingot::core {

// How a backend runs a node. Slow: it runs, and a peer (torch on the same machine) is predicted to need less
// time by the factor of the two times, which are of the whole node at typical sizes, on one thread.
struct Support {
  enum class Answer : uint8_t { kFast, kSlow, kNo } answer = Answer::kFast;
  std::string reason;  // why slow or not at all, for reports
  double own_ns = 0, peer_ns = 0;
};

// What a build is for. `text` is part of cache keys: equal texts are equal targets.
struct Target {
  std::string backend = "cpu";
  std::string device;  // in the backend's own words, as its `device` gives them: "x86-64-v4+vnni"
  int level = 3;       // optimization level 0..3
  enum class Numerics { kStrict, kDefault, kFast } numerics = Numerics::kDefault;
  std::string text() const;
};

// One kernel ready to be placed into a program: what a region became.
struct LoweredStep {
  std::string name;
  std::vector<Value*> arguments;  // of the region node: operands and results, in the kernel's order
  std::vector<bool> writes;       // one an argument
  // Operands (positions in `arguments`) whose memory the only result may take over: each element is read only
  // before the result's same element is stored, and no element is stored twice. In-place updates (kInPlace)
  // need no entry.
  std::vector<uint32_t> may_overwrite;
  std::vector<std::pair<std::string, Value*>> binds;  // symbol <- the i64 scalar result that the host reads
  Launch launch;                                      // its image is found by the key
  std::string kernel_key;                             // canonical text of everything that decides the code
  std::function<Image()> compile;   // makes the code; called once a distinct key, maybe on another thread
  std::string routine, attributes;  // instead of a kernel
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view generator() const = 0;  // what makes its code, with its version: a part of keys
  // The canonical words for a device that a user names; "": the one of this machine, or the one that most
  // have. UserError if there is no such device.
  virtual std::string device(std::string_view words) const = 0;
  // The place where its values lie: on the host, or on device 0 of the engine.
  virtual Place place() const { return {}; }
  // Of one node of the graph after the stage `adapt`, at typical sizes of its symbols.
  virtual Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const = 0;
  // The passes that only this backend has: rows of the pass table (passes/pipeline.h).
  virtual std::vector<Pass> passes(const Target&) const { return {}; }
  virtual LayoutRequest layouts(const Node& node, const Target& target) const = 0;
  // May `consumer` (elementwise or view of one of `region`'s results) join the fused node `region`? And may
  // `producer` feed it inline?
  virtual bool may_fuse_consumer(const Node& region, const Node& consumer, const Target& target) const = 0;
  virtual bool may_fuse_producer(const Node& region, const Node& producer, const Target& target) const = 0;
  // Steps, in order, that compute a node of the final graph (fused or single).
  virtual std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                         const Target& target) const = 0;
};

}  // namespace ingot::core
