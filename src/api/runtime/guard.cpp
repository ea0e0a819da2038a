// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/guard.h"

#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "api/runtime/handles.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

// Without memory, no status can be allocated either.
constinit ingot_status no_memory{.kind = INGOT_DEVICE_ERROR,
                                 .code = "INGOT-D004",
                                 .message = "out of memory",
                                 .node = "",
                                 .source = "",
                                 .advice = "",
                                 .text = "[INGOT-D004] out of memory",
                                 .storage = nullptr};

ingot_status* convert() {
  try {
    throw;
  } catch (const Error& error) {
    return make_status(error);
  } catch (const std::bad_alloc&) {
    return &no_memory;
  } catch (const std::exception& error) {
    return make_status(InternalError(error.what()));
  } catch (...) {
    return make_status(InternalError("an exception of unknown type"));
  }
}

}  // namespace

ingot_status* make_status(const Error& error) {
  const ErrorDetails& details = error.details();
  const std::array<std::string_view, 6> texts = {details.code,        details.message, details.node,
                                                 details.source_line, details.advice,  error.what()};
  size_t bytes = texts.size();  // for the terminators
  for (const std::string_view text : texts) bytes += text.size();
  auto storage = std::make_unique<char[]>(bytes);
  auto status = std::make_unique<ingot_status>();
  status->kind = static_cast<ingot_error_kind>(error.kind());
  const std::array fields = {&status->code,   &status->message, &status->node,
                             &status->source, &status->advice,  &status->text};
  char* next = storage.get();
  for (size_t i = 0; i < texts.size(); ++i) {
    *fields[i] = next;
    if (!texts[i].empty()) std::memcpy(next, texts[i].data(), texts[i].size());
    next += texts[i].size() + 1;
  }
  status->storage = storage.release();
  return status.release();
}

ingot_status* current_exception_status() noexcept {
  try {
    return convert();
  } catch (...) {  // no memory for the actual error
    return &no_memory;
  }
}

}  // namespace ingot::core::api
