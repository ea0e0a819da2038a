// SPDX-License-Identifier: Apache-2.0
// Exceptions of the C++ API. Every function of these headers may throw them; other exceptions (std::bad_alloc
// of containers) propagate unchanged.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <exception>
#include <memory>
#include <string>

#include "ingot/ingot.h"

namespace ingot {

// What went wrong, whose fault it is, and what to do. Base of the four kinds below.
class Error : public std::exception {
 public:
  // Takes ownership of the status, which is not NULL.
  explicit Error(ingot_status* status) : status_(status, &ingot_status_free) {}

  ingot_error_kind kind() const { return ingot_status_kind(status_.get()); }
  const char* code() const { return ingot_status_code(status_.get()); }        // stable: "INGOT-U302"
  const char* message() const { return ingot_status_message(status_.get()); }  // without code and advice
  const char* node() const { return ingot_status_node(status_.get()); }        // of the model, "" if none
  const char* source() const { return ingot_status_source(status_.get()); }    // its line, "" if unknown
  const char* advice() const { return ingot_status_advice(status_.get()); }    // what to do, or ""
  const char* what() const noexcept override { return ingot_status_text(status_.get()); }  // all of the above

 private:
  std::shared_ptr<ingot_status> status_;  // shared: exceptions are copied
};

class UserError final : public Error {  // a bad model, file, option or argument
  using Error::Error;
};
class UnsupportedError final : public Error {  // valid, but not supported by Ingot
  using Error::Error;
};
class InternalError final : public Error {  // a bug in Ingot
  using Error::Error;
};
class DeviceError final : public Error {  // the system or a device failed: memory, files
  using Error::Error;
};

// The page on an error code ("INGOT-U302"), or "" if there is no such code.
inline std::string explain(const std::string& code) {
  const char* page = ingot_explain(code.c_str());
  return page == nullptr ? std::string() : page;
}

namespace detail {

// Throws the error of a status of the C API; NULL is success.
inline void check(ingot_status* status) {
  if (status == nullptr) [[likely]]
    return;
  switch (ingot_status_kind(status)) {
    case INGOT_USER_ERROR:
      throw UserError(status);
    case INGOT_UNSUPPORTED_ERROR:
      throw UnsupportedError(status);
    case INGOT_DEVICE_ERROR:
      throw DeviceError(status);
    case INGOT_INTERNAL_ERROR:
      break;
  }
  throw InternalError(status);
}

// Throws UserError for a mistake found by a header itself.
[[noreturn]] inline void refuse(const char* code, const std::string& message, const char* advice) {
  throw UserError(ingot_status_create(INGOT_USER_ERROR, code, message.c_str(), advice));
}

inline std::string take_text(ingot_text* text) {
  const std::unique_ptr<ingot_text, decltype(&ingot_text_free)> owner(text, &ingot_text_free);
  return {ingot_text_data(text), ingot_text_size(text)};
}

}  // namespace detail
}  // namespace ingot

#endif  // INGOT_HAS_CPP20
