// SPDX-License-Identifier: Apache-2.0
// ingot_status_*, ingot_text_*: what the caller reads and frees. NULL is a status without an error.
#include "api/runtime/handles.h"

namespace ingot::core::api {

ingot_text* make_text(std::string text) { return new ingot_text{std::move(text)}; }

}  // namespace ingot::core::api

namespace {

const char* field(const ingot_status* status, std::string ingot_status::* member) {
  return status == nullptr ? "" : (status->*member).c_str();
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
void ingot_status_free(ingot_status* status) { delete status; }

const char* ingot_text_data(const ingot_text* text) { return text == nullptr ? "" : text->text.c_str(); }
size_t ingot_text_size(const ingot_text* text) { return text == nullptr ? 0 : text->text.size(); }
void ingot_text_free(ingot_text* text) { delete text; }

}  // extern "C"
