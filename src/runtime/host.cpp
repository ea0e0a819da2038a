// SPDX-License-Identifier: Apache-2.0
#include "runtime/host.h"

#include <algorithm>

namespace ingot::core {
namespace {

int chosen_threads(int wanted) {
  const int available = available_threads();
  return wanted <= 0 ? available : std::min(wanted, available);
}

}  // namespace

Host::Host(const HostOptions& options, std::span<const Executor* const> executors)
    : options_(options), executors_(executors.begin(), executors.end()) {
  apply();
}

void Host::apply() {
  pool_ = std::make_unique<ThreadPool>(chosen_threads(options_.threads), options_.spin_microseconds);
}

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
