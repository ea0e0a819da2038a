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
#include "runtime/log.h"
#include "support/thread_pool.h"

namespace ingot::core {

struct HostOptions {
  int threads = 0;             // 0: min(affinity mask, cgroup quota)
  int spin_microseconds = 50;  // 0 inside torch, so that its own threads are not starved
  Logger logger;
  size_t cache_bytes = size_t{64} << 20;     // of the cache that builds share: about 5,000 kernels
  std::filesystem::path cache_folder;        // of its entries on disk; empty: none
  uint64_t cache_limit = uint64_t{5} << 30;  // bytes of these
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
  Cache& cache() { return cache_; }  // of builds without a session
  // The cache's entries on disk; null: none.
  const std::shared_ptr<DiskStore>& disk_store() const { return disk_store_; }
  // Entries in another folder; without `report`, failures go to this host's log.
  std::shared_ptr<DiskStore> open_disk_store(const std::filesystem::path& folder, uint64_t limit,
                                             const ReportProblem& report = {});
  // The tier of that name, opened by the first who asks for it; may be null.
  std::shared_ptr<EntryTier> shared_tier(const std::string& name,
                                         const std::function<std::shared_ptr<EntryTier>()>& open);

 private:
  void apply();

  HostOptions options_;
  Log log_;
  Cache cache_;
  std::shared_ptr<DiskStore> disk_store_;
  std::mutex mutex_;  // of `tiers_`
  std::map<std::string, std::shared_ptr<EntryTier>> tiers_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<const Executor*> executors_;
};

}  // namespace ingot::core
