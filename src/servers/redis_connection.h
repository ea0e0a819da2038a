// SPDX-License-Identifier: Apache-2.0
// Commands to a Redis server, one after another. Errors are ServerFailures, after which the connection is of
// no use.
#pragma once

#include <hiredis/hiredis.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "servers/server_address.h"
#include "servers/socket.h"

namespace ingot::core {

struct RedisReply {
  enum class Kind : uint8_t { kNothing, kText, kInteger, kError } kind = Kind::kNothing;
  std::string text;  // of an error too
  int64_t integer = 0;
};

class RedisConnection {
 public:
  RedisConnection(const ServerAddress& address, const Deadline& deadline);

  // A reply of much more than `limit` bytes is a failure, and so is one that is an error, or a list. The
  // reply is valid until the next call.
  const RedisReply& call(std::initializer_list<std::string_view> words, size_t limit,
                         const Deadline& deadline);

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const { ::redisReaderFree(reader); }
  };
  void receive(size_t limit, const Deadline& deadline);

  RedisReply reply_;  // filled by the reader
  Socket socket_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

}  // namespace ingot::core
