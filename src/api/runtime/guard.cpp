// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/guard.h"

#include <new>

#include "api/runtime/handles.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

ingot_status* make_status(const Error& error) {
  const ErrorDetails& details = error.details();
  return new ingot_status{.kind = static_cast<ingot_error_kind>(error.kind()),
                          .code = std::string(details.code),
                          .message = details.message,
                          .node = details.node,
                          .source = details.source_line,
                          .advice = details.advice,
                          .text = error.what()};
}

ingot_status* convert() {
  try {
    throw;
  } catch (const Error& error) {
    return make_status(error);
  } catch (const std::bad_alloc&) {
    return make_status(DeviceError("INGOT-D004", "there is no memory left"));
  } catch (const std::exception& error) {
    return make_status(InternalError(error.what()));
  } catch (...) {
    return make_status(InternalError("an exception of unknown type"));
  }
}

}  // namespace

// Memory may be so short that there is none for a status: after that nothing can be told to the caller.
ingot_status* current_exception_status() noexcept { return convert(); }

}  // namespace ingot::core::api
