// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cache/entry_tier.h"
#include "servers/cache_server.h"

namespace ingot::core {

// A lease that was taken from a server: a thread renews it while the object lives. When this process dies,
// it ends after `time`, and another takes it.
class ServerLease final : public TierLease {
 public:
  // `server` outlives it.
  ServerLease(CacheServer& server, const Digest& key, std::string token, std::chrono::milliseconds time);
  ~ServerLease() override;

 private:
  void renew_until_end();

  CacheServer& server_;
  const Digest key_;
  const std::string token_;
  const std::chrono::milliseconds time_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread renewer_;
};

}  // namespace ingot::core
