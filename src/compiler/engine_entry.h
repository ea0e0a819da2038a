// SPDX-License-Identifier: Apache-2.0
// Whole engines as entries of a cache on disk. An entry has no weights: they are those of the model that is
// built.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "cache/lease.h"
#include "compiler/build_report.h"
#include "compiler/compile_hooks.h"
#include "compiler/options.h"
#include "engine/engine_data.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

// A build whose engine may be an entry: what the entry is found by, and how weights get into it.
class EngineEntry {
 public:
  // `program` and `model` outlive it; `model` is as imported, with the asked-for ranges applied. `tactics`:
  // as of engine_key.
  EngineEntry(const aten::Program& program, const aten::Imported& model, const Backend& backend,
              const CompileOptions& options, const CompileHooks& hooks, std::string_view tactics);

  // The engine as the build would make it, from `hooks.cache_use`; null if there is none. Fills `report`.
  // Where another process makes it at the moment, waits for it; otherwise other processes wait for this one.
  std::shared_ptr<EngineData> find(BuildReport& report);
  void keep(const EngineData& engine, const BuildReport& report) const;
  const std::string& structure() const { return structure_; }  // engine_key

 private:
  std::shared_ptr<EngineData> look_up(BuildReport& report) const;
  std::shared_ptr<EngineData> open(const Blob& entry, BuildReport& report) const;
  bool give_weights(EngineData& engine) const;
  bool wait_for_others();  // false if nobody else made it meanwhile

  const aten::Imported& model_;
  const CompileHooks& hooks_;
  const CacheUse& use_;
  std::string structure_;
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
