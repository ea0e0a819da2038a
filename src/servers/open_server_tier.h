// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cache/entry_tier.h"

namespace ingot::core {

struct ServerSettings {
  std::string address;       // of server_address.h
  std::string signing_key;   // file of a secret key; empty: the server is only read
  std::string trusted_keys;  // file of public keys; empty: the server is not used
  int64_t deadline_ms = 10'000;
  std::string ca_file;  // certificates of authorities, for https; "": the system's
  auto operator<=>(const ServerSettings&) const = default;
};

// Null if the server cannot be used. `log` gets one line on each thing that is not set, which says what to
// set; `report` what is wrong with the files of keys. UserError INGOT-U027 if the address is malformed.
std::shared_ptr<EntryTier> open_server_tier(const ServerSettings& settings,
                                            const std::function<void(const std::string&)>& log,
                                            const ReportProblem& report);

}  // namespace ingot::core
