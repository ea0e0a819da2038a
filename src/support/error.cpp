// SPDX-License-Identifier: Apache-2.0
#include "support/error.h"

#include <fmt/core.h>

namespace ingot::core {
namespace {

std::string describe(const ErrorDetails& details) {
  std::string text = fmt::format("[{}] {}", details.code, details.message);
  if (!details.node.empty()) text += fmt::format("\n  node: {}", details.node);
  if (!details.source_line.empty()) text += fmt::format("\n  at: {}", details.source_line);
  if (!details.advice.empty()) text += fmt::format("\n  what to do: {}", details.advice);
  return text;
}

ErrorDetails plain(std::string_view code, std::string message, std::string advice) {
  return {.code = code,
          .message = std::move(message),
          .node = {},
          .source_line = {},
          .advice = std::move(advice)};
}

}  // namespace

Error::Error(ErrorKind kind, ErrorDetails details)
    : kind_(kind), details_(std::move(details)), text_(describe(details_)) {}

UserError::UserError(std::string_view code, std::string message, std::string advice)
    : Error(ErrorKind::kUser, plain(code, std::move(message), std::move(advice))) {}

UnsupportedError::UnsupportedError(std::string_view code, std::string message, std::string advice)
    : Error(ErrorKind::kUnsupported, plain(code, std::move(message), std::move(advice))) {}

InternalError::InternalError(std::string message, std::source_location where)
    : Error(ErrorKind::kInternal,
            plain("INGOT-I001", fmt::format("{} ({}:{})", message, where.file_name(), where.line()),
                  "this is a bug in Ingot: please report it with the model or file that causes it")) {}

DeviceError::DeviceError(std::string_view code, std::string message, std::string advice)
    : Error(ErrorKind::kDevice, plain(code, std::move(message), std::move(advice))) {}

}  // namespace ingot::core
