// SPDX-License-Identifier: Apache-2.0
// Final graphs -> steps with kernel binaries: each distinct kernel is compiled once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "cache/cache.h"
#include "compiler/lone_node.h"
#include "compiler/tactic_table.h"
#include "plan/plan_input.h"

namespace ingot::core {

// What a backend made of a node. The values of the steps are those of `lone`.
struct LoweredNode {
  LoneNode lone;
  std::vector<LoweredStep> steps;
};

// The tactics that were timed earlier on `processor`.
struct KnownTactics {
  TacticTable table;
  std::string processor;
  bool can_time = false;  // the others
};

// What equal nodes of one build share: each is lowered once, and each distinct kernel is one image.
struct ImageTable {
  struct Entry {
    std::string key;                 // LoweredKernel::key
    std::function<Image()> compile;  // run by compile_images
  };
  std::map<std::string, LoweredNode> nodes;  // by LoneNode::text
  std::map<std::string, ImageId> ids;        // by the key
  std::vector<Entry> images;
  bool shares = true;  // false: each use is lowered and compiled, to measure what sharing saves
  const KnownTactics* known = nullptr;  // null: none
};

// Lowers every node of `graph` that needs a step, in order.
std::vector<NodeStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                  const SymbolTable& symbols, ImageTable& images);

// Where images are looked up; null: nowhere.
struct ImageCache {
  Cache* cache = nullptr;
  CacheUse use;
};

struct CompiledImages {
  std::vector<Image> images;    // in the order of the table
  std::vector<uint8_t> is_new;  // one per image: 0 if it was found in the cache, or made by another build
};

// Compiles on `threads` threads what `cache` lacks; calls report(done, total) after each on the
// caller's. `target_text` is what all of the keys have in common: the code generator and the device.
CompiledImages compile_images(const ImageTable& table, std::string_view target_text, int threads,
                              const ImageCache& cache, const std::function<void(size_t, size_t)>& report);

}  // namespace ingot::core
