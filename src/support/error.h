// SPDX-License-Identifier: Apache-2.0
// The four kinds of error. Each says whose fault it is, where it happened, and what to do.
#pragma once

#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace ingot::core {

// Stable numbers: they are the status values of the C API.
enum class ErrorKind { kUser = 1, kUnsupported = 2, kInternal = 3, kDevice = 4 };

// What a person has to know about one failure. `code` is stable ("INGOT-U012") and documented in
// docs/errors.md.
struct ErrorDetails {
  std::string_view code;
  std::string message;      // what was wrong, with the offending values
  std::string node;         // name of the node, empty if there is none
  std::string source_line;  // "file.py:214 in forward" of the user's model, empty if unknown
  std::string advice;       // what to do about it; empty if the message is enough
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, ErrorDetails details);
  ErrorKind kind() const { return kind_; }
  const ErrorDetails& details() const { return details_; }
  const char* what() const noexcept override { return text_.c_str(); }  // all details in one text

 private:
  ErrorKind kind_;
  ErrorDetails details_;
  std::string text_;
};

struct UserError final : Error {  // a bad model, file, option or argument
  explicit UserError(ErrorDetails details) : Error(ErrorKind::kUser, std::move(details)) {}
  UserError(std::string_view code, std::string message, std::string advice = {});
};
struct UnsupportedError final : Error {  // valid, but not supported by Ingot
  explicit UnsupportedError(ErrorDetails details) : Error(ErrorKind::kUnsupported, std::move(details)) {}
  UnsupportedError(std::string_view code, std::string message, std::string advice = {});
};
struct InternalError final : Error {  // our bug
  explicit InternalError(std::string message, std::source_location where = std::source_location::current());
};
struct DeviceError final : Error {  // the system or a device refused: memory, files, drivers
  DeviceError(std::string_view code, std::string message, std::string advice = {});
};

// Throws InternalError if `condition` is false: for conditions that only a bug can break.
inline void invariant(bool condition, std::string_view message,
                      std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    throw InternalError(std::string(message), where);
}

}  // namespace ingot::core
