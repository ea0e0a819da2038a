// SPDX-License-Identifier: Apache-2.0
// The only process-wide object: thread pool, executors, log. Created lazily by the API and passed down.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "backends/executor.h"
#include "cache/cache.h"
#include "routines/communicator.h"
#include "runtime/log.h"
#include "support/background.h"
#include "support/thread_pool.h"

namespace ingot::core {

struct HostOptions {
  int threads = 0;             // 0: min(affinity mask, cgroup quota)
  int spin_microseconds = 50;  // 0 inside torch, so that its own threads are not starved
  Logger logger;
  size_t cache_bytes = size_t{64} << 20;            // of the cache that builds share: about 5,000 kernels
  std::filesystem::path cache_folder;               // of its entries on disk; empty: none
  uint64_t cache_limit = uint64_t{5} << 30;         // bytes of these
  WritePolicy weights_policy = WritePolicy::kBack;  // of prepared weights, which are entries there
  bool names_ranges = false;                        // of steps, for tools that watch devices
  // What the environment sets of the options of builds, by name: defaults of builds that leave them out.
  std::map<std::string, std::string, std::less<>> build_options;
};

class Host {
 public:
  Host(const HostOptions& options, std::span<const Executor* const> executors);
  ThreadPool& pool() { return *pool_; }
  // A pool for one caller, with at most the threads that affinity and quota allow. DeviceError INGOT-D003.
  std::unique_ptr<ThreadPool> make_pool(int threads);
  // These two create a new pool: not during a run. 0 threads: what affinity and quota allow.
  void set_threads(int threads);
  void set_spin(int microseconds);
  const Executor* find_executor(std::string_view name) const;
  Log& log() { return log_; }
  const auto& build_options() const { return options_.build_options; }
  Cache& cache() { return cache_; }  // of builds without a session
  // The cache's entries on disk; null: none.
  const std::shared_ptr<DiskStore>& disk_store() const { return disk_store_; }
  // Where prepared weights are looked up; null: nowhere. Not changed if the policy is kReadOnly.
  const std::shared_ptr<DiskStore>& weights_store() const { return weights_store_; }
  WritePolicy weights_policy() const { return options_.weights_policy; }
  bool names_ranges() const { return options_.names_ranges; }
  // Entries in another folder; without `report`, failures go to this host's log.
  enum class Access { kReadWrite, kReadOnly };
  std::shared_ptr<DiskStore> open_disk_store(const std::filesystem::path& folder, uint64_t limit,
                                             const ReportProblem& report = {},
                                             Access access = Access::kReadWrite);
  BackgroundWork& background() { return background_; }
  // Groups of ranks for contexts that have none of that name; null: no longer.
  void share_group(const std::string& name, std::shared_ptr<Communicator> group);
  std::vector<BoundGroups::Bound> shared_groups();
  // The group that the environment describes; `join` makes it, and a new one if it has become unusable.
  std::shared_ptr<Communicator> group_of_environment(
      const std::function<std::shared_ptr<Communicator>()>& join);
  // The tier of that name, opened by the first who asks for it; may be null.
  std::shared_ptr<EntryTier> shared_tier(const std::string& name,
                                         const std::function<std::shared_ptr<EntryTier>()>& open);

 private:
  void apply();
  std::shared_ptr<DiskStore> choose_weights_store();

  HostOptions options_;
  Log log_;
  Cache cache_;
  std::shared_ptr<DiskStore> disk_store_, weights_store_;
  std::mutex mutex_;  // of `tiers_` and `groups_`
  std::vector<BoundGroups::Bound> groups_;
  std::mutex joining_;  // of `world_`; held while the ranks meet
  std::shared_ptr<Communicator> world_;
  std::map<std::string, std::shared_ptr<EntryTier>> tiers_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<const Executor*> executors_;
  BackgroundWork background_{uint64_t{1} << 30};
};

}  // namespace ingot::core
