// SPDX-License-Identifier: Apache-2.0
#include "build_calls.h"

#include <nanobind/stl/string.h>

#include "gil.h"

namespace ingot::python {

int32_t report_progress(void* user, const char* phase, size_t done, size_t total, double remaining) {
  const HeldGil gil;
  auto& state = *static_cast<ProgressState*>(user);
  if (ask_gil([] { return PyErr_CheckSignals(); }) != 0) {
    PyErr_Clear();
    state.interrupted = true;
    return 0;
  }
  if (state.callback.is_none()) return 1;
  try {
    const nb::object answer = ask_gil([&] { return state.callback(phase, done, total, remaining); });
    return answer.is_none() || nb::cast<bool>(answer) ? 1 : 0;
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("ingot progress callback");
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
