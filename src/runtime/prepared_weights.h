// SPDX-License-Identifier: Apache-2.0
// Results of init as an entry of the cache on disk: all processes that open an engine file with the same
// weights map one copy of them. For engines that name their weights by digests (EngineData::weights_files).
#pragma once

#include <memory>
#include <optional>

#include "cache/disk_store.h"
#include "engine/engine_file.h"
#include "runtime/refit.h"

namespace ingot::core {

class PreparedWeights {
 public:
  // Nothing is found or kept where init computes less than 1 MiB, or on a device, or of shards.
  PreparedWeights(std::shared_ptr<const EngineFile> file, std::shared_ptr<DiskStore> store);

  uint64_t bytes() const { return bytes_; }  // that init computes

  // Points the results of init in `weights` at the entry, if there is one. kOfTheseFiles: every digest was
  // compared when these versions of the files were those at hand.
  enum class Found { kNothing, kOfOtherFiles, kOfTheseFiles };
  Found find(const WeightsFiles& files, WeightSet& weights) const;
  void keep(const WeightsFiles& files, const WeightSet& weights) const;

 private:
  std::shared_ptr<const EngineFile> file_;
  std::shared_ptr<DiskStore> store_;
  uint64_t bytes_ = 0;
  std::optional<CacheKey> key_;
};

}  // namespace ingot::core
