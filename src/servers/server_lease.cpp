// SPDX-License-Identifier: Apache-2.0
#include "servers/server_lease.h"

namespace ingot::core {
namespace {

constexpr int kRenewals = 4;  // within the time of a lease

}  // namespace

ServerLease::ServerLease(CacheServer& server, const Digest& key, std::string token,
                         std::chrono::milliseconds time)
    : server_(server), key_(key), token_(std::move(token)), time_(time), renewer_([this] {
        renew_until_end();
      }) {}

// A server that cannot be told ends the lease by itself.
ServerLease::~ServerLease() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  renewer_.join();
  try {
    server_.end_lease(key_, token_, Deadline(time_ / kRenewals));
  } catch (const ServerFailure&) {
  }
}

void ServerLease::renew_until_end() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, time_ / kRenewals, [&] { return is_over_; })) {
    lock.unlock();
    try {
      server_.renew_lease(key_, token_, time_, Deadline(time_ / kRenewals));
    } catch (const ServerFailure&) {  // another may take over, which is harmless
    }
    lock.lock();
  }
}

}  // namespace ingot::core
