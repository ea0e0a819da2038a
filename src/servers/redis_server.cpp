// SPDX-License-Identifier: Apache-2.0
#include "servers/redis_server.h"

#include <fmt/core.h>

namespace ingot::core {
namespace {

constexpr uint64_t kChunk = uint64_t{32} << 20;  // bytes; Redis ends connections that send 512 MiB at once

// A lease never has more time than its holder gives it at once: more is left of a clock of the server's that
// went back, and would keep others waiting for a holder that is gone. 1 if it was taken.
constexpr std::string_view kTake =
    "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end "
    "local left = redis.call('pttl', KEYS[1]) "
    "if left < 0 or left > tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
// Only whoever knows the token may change a lease: another may have it by now.
constexpr std::string_view kRenew =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return "
    "0";
constexpr std::string_view kEnd =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

std::string_view chars_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Nothing where there is no such string.
const std::string* text_of(const RedisReply& reply) {
  return reply.kind == RedisReply::Kind::kText ? &reply.text : nullptr;
}

}  // namespace

template <typename Use>
auto RedisServer::with_connection(const Deadline& deadline, Use&& use) {
  std::unique_ptr<RedisConnection> connection = idle_.take();
  if (connection == nullptr) connection = std::make_unique<RedisConnection>(address_, deadline);
  auto result = use(*connection);
  idle_.put_back(std::move(connection));
  return result;
}

std::string RedisServer::name_of(std::string_view kind, const Digest& digest) const {
  return fmt::format("{}:{}:{}", address_.space.empty() ? "ingot" : address_.space, kind, hex(digest));
}

std::optional<std::string> RedisServer::read_manifest(const Digest& key, size_t limit,
                                                      const Deadline& deadline) {
  return with_connection(deadline, [&](RedisConnection& connection) -> std::optional<std::string> {
    const std::string* text = text_of(connection.call({"GET", name_of("ac", key)}, limit, deadline));
    return text == nullptr ? std::nullopt : std::optional(*text);
  });
}

std::optional<std::vector<std::byte>> RedisServer::read_content(const Digest& digest, uint64_t length,
                                                                const Deadline& deadline) {
  using Content = std::optional<std::vector<std::byte>>;
  return with_connection(deadline, [&](RedisConnection& connection) -> Content {
    std::vector<std::byte> content;  // grows as bytes arrive, as the length is only what a manifest says
    for (uint64_t i = 0; content.size() < length; ++i) {
      const uint64_t expected = std::min(kChunk, length - content.size());
      const std::string name = fmt::format("{}:{}", name_of("cas", digest), i);
      const std::string* chunk = text_of(connection.call({"GET", name}, expected, deadline));
      if (chunk == nullptr || chunk->size() != expected) return std::nullopt;
      const Bytes bytes = as_bytes(*chunk);
      content.insert(content.end(), bytes.begin(), bytes.end());
    }
    return content;
  });
}

void RedisServer::write_manifest(const Digest& key, const std::string& manifest, const Deadline& deadline) {
  with_connection(deadline, [&](RedisConnection& connection) {
    connection.call({"SET", name_of("ac", key), manifest}, 0, deadline);
    return 0;
  });
}

void RedisServer::write_content(const Digest& digest, Bytes content, const Deadline& deadline) {
  with_connection(deadline, [&](RedisConnection& connection) {
    for (uint64_t i = 0; !content.empty(); ++i) {
      const Bytes chunk = content.first(std::min(kChunk, content.size()));
      const std::string name = fmt::format("{}:{}", name_of("cas", digest), i);
      connection.call({"SET", name, chars_of(chunk)}, 0, deadline);
      content = content.subspan(chunk.size());
    }
    return 0;
  });
}

bool RedisServer::take_lease(const Digest& key, const std::string& token, std::chrono::milliseconds time,
                             const Deadline& deadline) {
  return with_connection(deadline, [&](RedisConnection& connection) {
    const std::string milliseconds = std::to_string(time.count());
    const RedisReply& reply =
        connection.call({"EVAL", kTake, "1", name_of("lease", key), token, milliseconds}, 0, deadline);
    return reply.kind == RedisReply::Kind::kInteger && reply.integer == 1;
  });
}

void RedisServer::renew_lease(const Digest& key, const std::string& token, std::chrono::milliseconds time,
                              const Deadline& deadline) {
  with_connection(deadline, [&](RedisConnection& connection) {
    connection.call({"EVAL", kRenew, "1", name_of("lease", key), token, std::to_string(time.count())}, 0,
                    deadline);
    return 0;
  });
}

void RedisServer::end_lease(const Digest& key, const std::string& token, const Deadline& deadline) {
  with_connection(deadline, [&](RedisConnection& connection) {
    connection.call({"EVAL", kEnd, "1", name_of("lease", key), token}, 0, deadline);
    return 0;
  });
}

}  // namespace ingot::core
