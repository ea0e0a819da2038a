// SPDX-License-Identifier: Apache-2.0
#include "status.h"

#include <cstring>
#include <memory>

namespace ingot::python {
namespace {

const char* class_name(ingot_error_kind kind) {
  switch (kind) {
    case INGOT_USER_ERROR:
      return "UserError";
    case INGOT_UNSUPPORTED_ERROR:
      return "UnsupportedError";
    case INGOT_DEVICE_ERROR:
      return "DeviceError";
    default:
      return "InternalError";
  }
}

// The names of files in messages may have any bytes.
nb::object message(const char* text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace"));
}

}  // namespace

void check(ingot_status* status) {
  if (status == nullptr) return;
  const std::unique_ptr<ingot_status, decltype(&ingot_status_free)> owner(status, &ingot_status_free);
  const nb::object type = nb::module_::import_("ingot.errors").attr(class_name(ingot_status_kind(status)));
  const nb::object error =
      type(message(ingot_status_text(status)), nb::arg("code") = ingot_status_code(status),
           nb::arg("node") = ingot_status_node(status), nb::arg("source") = ingot_status_source(status),
           nb::arg("advice") = ingot_status_advice(status));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

std::string take_text(ingot_text* text) {
  std::string copy(ingot_text_data(text), ingot_text_size(text));
  ingot_text_free(text);
  return copy;
}

}  // namespace ingot::python
