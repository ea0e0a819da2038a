// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ranks/group.h"
#include "ranks/posix/connection.h"

namespace ingot::core {

struct Address {
  std::string host, port;
};

// "host:port", or "[::1]:port". UserError INGOT-U353.
Address parse_address(const std::string& text);

class TcpGroupListener final : public GroupListener {
 public:
  TcpGroupListener(Listener listener, const std::string& host);
  const std::string& address() const override { return address_; }
  Listener& listener() { return listener_; }

 private:
  Listener listener_;
  std::string address_;
};

}  // namespace ingot::core
