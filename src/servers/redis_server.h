// SPDX-License-Identifier: Apache-2.0
// Redis as a cache server. NAMESPACE:ac:KEY is a manifest, NAMESPACE:cas:DIGEST:I the I-th 32 MiB of a
// content, NAMESPACE:lease:KEY the token of whoever makes an entry. Without a namespace the names begin with
// "ingot".
#pragma once

#include "servers/cache_server.h"
#include "servers/idle_connections.h"
#include "servers/redis_connection.h"

namespace ingot::core {

class RedisServer final : public CacheServer {
 public:
  explicit RedisServer(ServerAddress address) : address_(std::move(address)) {}

  std::string name() const override { return address_.text(); }
  std::optional<std::string> read_manifest(const Digest& key, size_t limit, const Deadline&) override;
  std::optional<std::vector<std::byte>> read_content(const Digest& digest, uint64_t length,
                                                     const Deadline&) override;
  void write_manifest(const Digest& key, const std::string& manifest, const Deadline&) override;
  void write_content(const Digest& digest, Bytes content, const Deadline&) override;

  bool has_leases() const override { return true; }
  bool take_lease(const Digest&, const std::string& token, std::chrono::milliseconds,
                  const Deadline&) override;
  void renew_lease(const Digest&, const std::string& token, std::chrono::milliseconds,
                   const Deadline&) override;
  void end_lease(const Digest&, const std::string& token, const Deadline&) override;

 private:
  std::string name_of(std::string_view kind, const Digest& digest) const;
  // Runs `use` with a connection, which is kept unless `use` throws.
  template <typename Use>
  auto with_connection(const Deadline& deadline, Use&& use);

  const ServerAddress address_;
  IdleConnections<RedisConnection> idle_;
};

}  // namespace ingot::core
