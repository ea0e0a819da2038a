// SPDX-License-Identifier: Apache-2.0
// ingot_status_*, ingot_text_*: results that the caller reads and frees. NULL is a status without an error.
#include <string>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "support/error.h"

using namespace ingot::core;

namespace ingot::core::api {

ingot_text* make_text(std::string text) { return new ingot_text{std::move(text)}; }

}  // namespace ingot::core::api

namespace {

const char* field(const ingot_status* status, const char* ingot_status::* member) {
  return status == nullptr ? "" : status->*member;
}

Error make_error(ingot_error_kind kind, const char* code, const char* message, const char* advice) {
  // Other codes are literals; this one only has to live during the call.
  return {static_cast<ErrorKind>(kind),
          {.code = code,
           .message = message,
           .node = {},
           .source_line = {},
           .advice = advice == nullptr ? "" : advice}};
}

}  // namespace

extern "C" {

ingot_error_kind ingot_status_kind(const ingot_status* status) {
  return status == nullptr ? ingot_error_kind{} : status->kind;
}
const char* ingot_status_code(const ingot_status* status) { return field(status, &ingot_status::code); }
const char* ingot_status_message(const ingot_status* status) { return field(status, &ingot_status::message); }
const char* ingot_status_node(const ingot_status* status) { return field(status, &ingot_status::node); }
const char* ingot_status_source(const ingot_status* status) { return field(status, &ingot_status::source); }
const char* ingot_status_advice(const ingot_status* status) { return field(status, &ingot_status::advice); }
const char* ingot_status_text(const ingot_status* status) { return field(status, &ingot_status::text); }

ingot_status* ingot_status_create(ingot_error_kind kind, const char* code, const char* message,
                                  const char* advice) {
  ingot_status* made = nullptr;
  ingot_status* failed = api::guard([&] {
    api::require(code, "code");
    api::require(message, "message");
    if (kind < INGOT_USER_ERROR || kind > INGOT_DEVICE_ERROR)
      throw UserError("INGOT-U016", std::to_string(kind) + " is not an ingot_error_kind");
    made = api::make_status(make_error(kind, code, message, advice));
  });
  return made != nullptr ? made : failed;
}

void ingot_status_free(ingot_status* status) {
  if (status == nullptr || status->storage == nullptr) return;
  delete[] status->storage;
  delete status;
}

const char* ingot_text_data(const ingot_text* text) { return text == nullptr ? "" : text->text.c_str(); }
size_t ingot_text_size(const ingot_text* text) { return text == nullptr ? 0 : text->text.size(); }
void ingot_text_free(ingot_text* text) { delete text; }

}  // extern "C"
