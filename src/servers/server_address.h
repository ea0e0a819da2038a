// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::core {

enum class ServerKind : uint8_t { kRedis, kHttp };

// redis://[[USER]:PASSWORD@]HOST[:PORT][/NAMESPACE], or http:// or https:// with a path as the namespace.
struct ServerAddress {
  ServerKind kind = ServerKind::kRedis;
  std::string scheme, user, password, host;
  uint16_t port = 0;
  std::string space;  // without slashes at its ends

  std::string text() const;  // without user and password
};

// UserError INGOT-U027 if it is not one.
ServerAddress parse_server_address(std::string_view text);

}  // namespace ingot::core
