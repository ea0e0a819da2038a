// SPDX-License-Identifier: Apache-2.0
#include "ranks/posix/address.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

#include "support/error.h"

namespace ingot::core {

Address parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  if (colon == std::string::npos || host.empty() || colon + 1 == text.size())
    throw UserError("INGOT-U353", fmt::format("'{}' is not the address of a group of ranks", text),
                    "give rank 0's as host:port, such as 127.0.0.1:29500");
  const std::string port = text.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size())
    throw UserError("INGOT-U353", fmt::format("'{}' is not a port: the address is '{}'", port, text),
                    "ports are 0 to 65535, and 0 is one that is free");
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return {is_bracketed ? host.substr(1, host.size() - 2) : host, port};
}

TcpGroupListener::TcpGroupListener(Listener listener, const std::string& host)
    : listener_(std::move(listener)),
      address_(host.find(':') == std::string::npos ? fmt::format("{}:{}", host, listener_.port())
                                                   : fmt::format("[{}]:{}", host, listener_.port())) {}

std::shared_ptr<GroupListener> listen_for_group(const std::string& address) {
  const Address own = parse_address(address);
  if (auto listener = Listener::open(own.host, own.port))
    return std::make_shared<TcpGroupListener>(std::move(*listener), own.host);
  throw UserError("INGOT-U353", fmt::format("rank 0 cannot listen at '{}': the port is taken", address),
                  "port 0 is one that is free");
}

}  // namespace ingot::core
