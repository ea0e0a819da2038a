// SPDX-License-Identifier: Apache-2.0
#include "runtime/host.h"

#include <algorithm>

#include <fmt/core.h>

namespace ingot::core {
namespace {

int chosen_threads(int wanted, const Log& log) {
  const int available = available_threads();
  if (wanted > available && log.wants(LogLevel::kWarning))
    log.write(LogLevel::kWarning,
              fmt::format("{} threads were asked for; affinity and quota allow {}", wanted, available));
  return wanted <= 0 ? available : std::min(wanted, available);
}

}  // namespace

Host::Host(const HostOptions& options, std::span<const Executor* const> executors)
    : options_(options),
      log_(options.logger),
      cache_(options.cache_bytes),
      executors_(executors.begin(), executors.end()) {
  if (!options.cache_folder.empty()) disk_store_ = open_disk_store(options.cache_folder, options.cache_limit);
  weights_store_ = choose_weights_store();
  apply();
}

std::shared_ptr<DiskStore> Host::choose_weights_store() {
  if (disk_store_ == nullptr || options_.weights_policy == WritePolicy::kNone) return nullptr;
  if (options_.weights_policy != WritePolicy::kReadOnly) return disk_store_;
  return open_disk_store(options_.cache_folder, options_.cache_limit, {}, Access::kReadOnly);
}

std::shared_ptr<DiskStore> Host::open_disk_store(const std::filesystem::path& folder, uint64_t limit,
                                                 const ReportProblem& report, Access access) {
  const auto warn = [this](const std::string& line) {
    if (log_.wants(LogLevel::kWarning)) log_.write(LogLevel::kWarning, line);
  };
  return std::make_shared<DiskStore>(DiskStoreOptions{.folder = folder,
                                                      .create = true,
                                                      .read_only = access == Access::kReadOnly,
                                                      .limit = limit,
                                                      .report = report ? report : warn,
                                                      .seconds = {}});
}

std::shared_ptr<EntryTier> Host::shared_tier(const std::string& name,
                                             const std::function<std::shared_ptr<EntryTier>()>& open) {
  const std::scoped_lock lock(mutex_);
  const auto [entry, is_new] = tiers_.try_emplace(name);
  if (is_new) entry->second = open();
  return entry->second;
}

void Host::share_group(const std::string& name, std::shared_ptr<Communicator> group) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(groups_, [&](const BoundGroups::Bound& bound) { return bound.name == name; });
  if (group != nullptr) groups_.push_back({name, std::move(group)});
}

std::vector<BoundGroups::Bound> Host::shared_groups() {
  const std::scoped_lock lock(mutex_);
  return groups_;
}

std::shared_ptr<Communicator> Host::group_of_environment(
    const std::function<std::shared_ptr<Communicator>()>& join) {
  const std::scoped_lock lock(joining_);
  if (world_ == nullptr || !world_->is_whole()) {
    world_ = nullptr;  // rank 0's port is free before it is needed again
    world_ = join();
  }
  return world_;
}

std::unique_ptr<ThreadPool> Host::make_pool(int threads) {
  return std::make_unique<ThreadPool>(chosen_threads(threads, log_), options_.spin_microseconds);
}

void Host::apply() { pool_ = make_pool(options_.threads); }

void Host::set_threads(int threads) {
  options_.threads = threads;
  apply();
}

void Host::set_spin(int microseconds) {
  options_.spin_microseconds = microseconds;
  apply();
}

const Executor* Host::find_executor(std::string_view name) const {
  const auto found =
      std::ranges::find(executors_, name, [](const Executor* executor) { return executor->name(); });
  return found == executors_.end() ? nullptr : *found;
}

}  // namespace ingot::core
