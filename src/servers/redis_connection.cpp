// SPDX-License-Identifier: Apache-2.0
#include "servers/redis_connection.h"

#include <array>
#include <new>
#include <vector>

#include <fmt/core.h>

namespace ingot::core {
namespace {

constexpr size_t kShortReply = 4096;  // bytes
constexpr size_t kPiece = 64 << 10;   // bytes that are read at once

struct FreeCommand {
  void operator()(char* command) const { ::redisFreeCommand(command); }
};

RedisReply* reply_of(const redisReadTask* task) { return static_cast<RedisReply*>(task->privdata); }

// The reader fills the one reply of its connection. Lists, which nobody asks for and a hostile server could
// make huge, are errors.
redisReplyObjectFunctions kReplyFunctions = {
    .createString = [](const redisReadTask* task, char* text, size_t length) -> void* {
      RedisReply* const reply = reply_of(task);
      reply->kind = task->type == REDIS_REPLY_ERROR ? RedisReply::Kind::kError : RedisReply::Kind::kText;
      reply->text.assign(text, length);
      return reply;
    },
    .createArray = [](const redisReadTask*, auto) -> void* { return nullptr; },
    .createInteger = [](const redisReadTask* task, long long value) -> void* {
      RedisReply* const reply = reply_of(task);
      reply->kind = RedisReply::Kind::kInteger;
      reply->integer = value;
      return reply;
    },
    .createNil = [](const redisReadTask* task) -> void* {
      reply_of(task)->kind = RedisReply::Kind::kNothing;
      return reply_of(task);
    },
    .freeObject = [](void*) {},
};

[[noreturn]] void refuse_reply() { throw ServerFailure("its answer is not one that Redis gives"); }

}  // namespace

RedisConnection::RedisConnection(const ServerAddress& address, const Deadline& deadline)
    : socket_(address.host, address.port, deadline),
      reader_(::redisReaderCreateWithFunctions(&kReplyFunctions)) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = &reply_;
  if (address.password.empty()) return;
  if (address.user.empty()) {
    call({"AUTH", address.password}, kShortReply, deadline);
  } else {
    call({"AUTH", address.user, address.password}, kShortReply, deadline);
  }
}

const RedisReply& RedisConnection::call(std::initializer_list<std::string_view> words, size_t limit,
                                        const Deadline& deadline) {
  std::vector<const char*> starts;
  std::vector<size_t> lengths;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* text = nullptr;
  const int length =
      ::redisFormatCommandArgv(&text, static_cast<int>(words.size()), starts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  const std::unique_ptr<char, FreeCommand> command(text);
  socket_.send(as_bytes(std::string_view(text, static_cast<size_t>(length))), deadline);
  receive(limit + kShortReply, deadline);
  if (reply_.kind == RedisReply::Kind::kError)
    throw ServerFailure(fmt::format("it answered '{}'", reply_.text));
  return reply_;
}

void RedisConnection::receive(size_t limit, const Deadline& deadline) {
  std::array<char, kPiece> piece;
  for (size_t received = 0;;) {
    void* reply = nullptr;
    if (::redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) refuse_reply();
    if (reply != nullptr) {
      if (reply != &reply_) refuse_reply();
      return;
    }
    const size_t count = socket_.receive(piece, deadline);
    received += count;
    if (received > limit) throw ServerFailure("its answer is longer than it may be");
    if (::redisReaderFeed(reader_.get(), piece.data(), count) != REDIS_OK) refuse_reply();
  }
}

}  // namespace ingot::core
