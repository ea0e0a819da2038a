// SPDX-License-Identifier: Apache-2.0
#include "torch_functions.h"

namespace ingot::python {

PyObject* find_in_torch(std::initializer_list<const char*> path) {
  nb::object found = nb::steal(PyImport_GetModule(nb::str("torch._C").ptr()));
  for (const char* name : path)
    found = found.is_valid() ? nb::getattr(found, name, nb::object()) : nb::object();
  PyErr_Clear();
  return found.release().ptr();
}

bool answers_yes(nb::handle object, PyObject* method) {
  PyObject* const arguments[] = {object.ptr()};
  PyObject* answer = method == nullptr ? nullptr : PyObject_Vectorcall(method, arguments, 1, nullptr);
  if (answer == nullptr) PyErr_Clear();
  Py_XDECREF(answer);
  return answer == Py_True;
}

}  // namespace ingot::python
