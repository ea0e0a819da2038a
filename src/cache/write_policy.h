// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::core {

// When entries go to a store beneath memory.
enum class WritePolicy : uint8_t {
  kThrough,   // before whoever made them goes on
  kBack,      // by a thread in the background
  kReadOnly,  // never: the store is only read
  kNone,      // never, nor is the store read
};

struct WritePolicies {
  WritePolicy disk = WritePolicy::kThrough, store = WritePolicy::kThrough, server = WritePolicy::kThrough;
  bool operator==(const WritePolicies&) const = default;
};

// Changes what `text` names: "back" all, "disk:back,server:read_only" these two. False, and no change, if it
// is not such a text.
bool parse_write_policies(std::string_view text, WritePolicies& policies);

// What parse_write_policies accepts, for messages.
constexpr std::string_view kWritePolicyForm =
    "through, back, read_only or none, or some of disk:, store: and server: with one each, separated by "
    "commas";

}  // namespace ingot::core
