// SPDX-License-Identifier: Apache-2.0
#include "types/plain_value.h"

#include <fmt/format.h>

namespace ingot::core {
namespace {

struct Text {
  std::string operator()(None) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{:#}", value); }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(TensorSlot slot) const { return slot.is_number ? "number" : "tensor"; }
  std::string operator()(SizeSlot) const { return "size"; }
  std::string operator()(const PlainValue& value) const { return std::visit(*this, value); }
};

}  // namespace

std::string to_string(const PlainValue& value) { return std::visit(Text{}, value); }
std::string to_string(const CallSlot& slot) { return std::visit(Text{}, slot); }

}  // namespace ingot::core
