// SPDX-License-Identifier: Apache-2.0
#include "build_calls.h"

#include <nanobind/stl/string.h>

#include "gil.h"

namespace ingot::python {

int32_t report_progress(void* user, const char* phase, size_t done, size_t total, double remaining) {
  const HeldGil gil;
  auto& state = *static_cast<ProgressState*>(user);
  try {
    // Ctrl-C, or what another handler raised.
    if (ask_gil([] { return PyErr_CheckSignals(); }) != 0) throw nb::python_error();
    if (state.callback.is_none()) return 1;
    const int proceeds = ask_gil([&] {
      const nb::object answer = state.callback(phase, done, total, remaining);
      return answer.is_none() ? 1 : PyObject_IsTrue(answer.ptr());
    });
    if (proceeds < 0) throw nb::python_error();
    return proceeds;
  } catch (...) {  // exceptions must not cross the C API
    state.failure = std::current_exception();
    return 0;
  }
}

int64_t ask_quiet(void* user, int32_t waits) {
  const HeldGil gil;
  try {
    return nb::cast<int64_t>(ask_gil([&] { return static_cast<ProgressState*>(user)->quiet(waits != 0); }));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("ingot quiet callback");
  } catch (const nb::cast_error&) {  // not a number
  }
  return -1;
}

}  // namespace ingot::python
