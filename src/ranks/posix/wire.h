// SPDX-License-Identifier: Apache-2.0
// What the ranks of a group send to each other. Little-endian, as all supported processors are.
#pragma once

#include <cstdint>

namespace ingot::core {

constexpr uint32_t kWireMagic = 0x334B4E52;  // "RNK3": its last letter is the version

enum class MessageKind : uint32_t {
  kData = 1,     // `bytes` bytes of a block
  kFailure = 2,  // `bytes` bytes of text: the sender's group is unusable, and so is the receiver's
  kWelcome = 3,  // one PeerAddress per rank
  kAlive = 4,    // the sender is at work, and has not begun its next exchange
};

struct MessageHeader {
  uint32_t magic = kWireMagic;
  MessageKind kind = MessageKind::kData;
  uint64_t bytes = 0;
  uint64_t sequence = 0;                 // how many exchanges there were before; of kWelcome: the session
  uint64_t program = 0, collective = 0;  // ExchangeTag; of kFailure: the error's code
  uint64_t elements = 0;                 // ExchangeTag
};
static_assert(sizeof(MessageHeader) == 48);

constexpr uint64_t kMostText = 4096;  // of kFailure

// The first message of each connection.
struct Hello {
  uint32_t magic = kWireMagic;
  int32_t rank = 0, size = 0;
  uint32_t deadline_ms = 0;  // that is left
  uint64_t group = 0;        // hash of its name
  uint64_t session = 0;      // from rank 0, that other ranks are of the same group; 0 to rank 0
  uint32_t port = 0;         // at which the sender listens
  uint32_t reserved = 0;
};
static_assert(sizeof(Hello) == 40);

struct PeerAddress {
  char host[60] = {};  // numeric, zero-terminated
  uint32_t port = 0;
};
static_assert(sizeof(PeerAddress) == 64);

}  // namespace ingot::core
