// SPDX-License-Identifier: Apache-2.0
// Entries on a server, which is trusted in nothing: an entry counts if a trusted key signed its manifest and
// the content is the one that the manifest names. A server that failed is left alone for a while.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "cache/entry_tier.h"
#include "servers/cache_server.h"
#include "support/ed25519.h"

namespace ingot::core {

struct ServerTierOptions {
  std::vector<PublicKey> trusted;              // at least one
  std::optional<SecretKey> signing_key;        // nothing: the server is only read
  std::chrono::milliseconds deadline{10'000};  // of each look-up and each upload
  std::chrono::milliseconds pause{60'000};     // without calls, after a failure
  std::chrono::milliseconds lease{10'000};     // renewed while its holder lives
  uint64_t largest = uint64_t{4} << 30;        // bytes of an entry
};

class ServerTier final : public EntryTier {
 public:
  ServerTier(std::unique_ptr<CacheServer> server, ServerTierOptions options)
      : server_(std::move(server)), options_(std::move(options)) {}

  std::string name() const override { return server_->name(); }
  Blob find(const Digest& key, const ReportProblem& report) override;
  void put(const Digest& key, Bytes sealed, const ReportProblem& report) override;
  Waited lease(const Digest& key, std::chrono::milliseconds patience, const std::function<void()>& wait,
               const ReportProblem& report) override;

 private:
  using Clock = std::chrono::steady_clock;
  // False if the server is left alone, or `call`, which gets a deadline, failed.
  template <typename Call>
  bool ask(std::string_view what, const ReportProblem& report, Call&& call);
  Blob read(const Digest& key, const Deadline& deadline, const ReportProblem& report);

  const std::unique_ptr<CacheServer> server_;
  const ServerTierOptions options_;
  std::atomic<Clock::rep> silent_until_{0};  // of Clock
};

}  // namespace ingot::core
