// SPDX-License-Identifier: Apache-2.0
#include "servers/open_server_tier.h"

#include <fmt/core.h>

#include "servers/http_server.h"
#include "servers/redis_server.h"
#include "servers/server_tier.h"
#include "support/error.h"
#include "support/key_files.h"

namespace ingot::core {
namespace {

std::unique_ptr<CacheServer> connect_to(const ServerAddress& address, const std::string& ca_file) {
  if (address.kind == ServerKind::kRedis) return std::make_unique<RedisServer>(address);
  return std::make_unique<HttpServer>(address, ca_file);
}

}  // namespace

std::shared_ptr<EntryTier> open_server_tier(const ServerSettings& settings,
                                            const std::function<void(const std::string&)>& log,
                                            const ReportProblem& report) {
  const ServerAddress address = parse_server_address(settings.address);
  if (settings.trusted_keys.empty()) {
    report(fmt::format(
        "cache: {} is not used, since no key is trusted: set INGOT_TRUSTED_KEYS or trusted_keys to a "
        "file of public keys",
        address.text()));
    return nullptr;
  }
  ServerTierOptions options{.deadline = std::chrono::milliseconds(settings.deadline_ms)};
  try {
    options.trusted = read_public_keys(settings.trusted_keys);
    if (!settings.signing_key.empty()) options.signing_key = read_secret_key(settings.signing_key);
  } catch (const UserError& error) {
    report(fmt::format("cache: {} is not used: {}", address.text(), error.details().message));
    return nullptr;
  }
  if (!options.signing_key)
    log(
        fmt::format("{} is only read: set INGOT_CACHE_SIGNING_KEY or cache_signing_key to a file of "
                    "`ingot cache keygen` to add entries",
                    address.text()));
  return std::make_shared<ServerTier>(connect_to(address, settings.ca_file), std::move(options));
}

}  // namespace ingot::core
