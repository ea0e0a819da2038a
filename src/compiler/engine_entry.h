// SPDX-License-Identifier: Apache-2.0
// Whole engines as entries of a cache, found by structure. An entry has no weights; names and weights are
// those of the model that is built.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/lease.h"
#include "compiler/assemble.h"
#include "compiler/build_report.h"
#include "compiler/compile_hooks.h"
#include "compiler/engine_names.h"
#include "compiler/options.h"
#include "engine/engine_data.h"

namespace ingot::core {

// A build whose engine may be an entry: what the entry is found by, and how the model gets into it.
class EngineEntry {
 public:
  // All of it outlives this object. `structure`: engine_key.
  EngineEntry(const std::string& structure, const NamedModel& model, const CompileOptions& options,
              const CompileHooks& hooks);

  // The engine as the build would make it, from `hooks.cache` or `hooks.cache_use`; null if there is none.
  // Fills `report`. Where another process makes it at the moment, waits for it; otherwise other processes
  // wait for this one.
  std::shared_ptr<EngineData> find(BuildReport& report);
  void keep(const AssembledEngine& engine, const BuildReport& report) const;

 private:
  std::shared_ptr<EngineData> look_up(BuildReport& report) const;
  std::shared_ptr<EngineData> open(const Blob& entry, BuildReport& report) const;
  bool wait_for_others();  // false if nobody else made it meanwhile

  const NamedModel& model_;
  const CompileHooks& hooks_;
  const CacheUse& use_;
  bool is_possible_ = false;
  CacheKey key_;
  // Held until the entry is where others find it, or this build ends without it.
  struct Leases {
    std::optional<Lease> folder;
    std::vector<std::unique_ptr<TierLease>> tiers;
  };
  std::shared_ptr<Leases> leases_ = std::make_shared<Leases>();
};

}  // namespace ingot::core
