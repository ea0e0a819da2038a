// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, a tuple or a list, as an array of borrowed objects.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

namespace ingot::python {

namespace nb = nanobind;

// Valid while the sequence is, and as long as nobody changes it. The stable ABI copies the pointers.
class Arguments {
 public:
  // `count`: the fewest that there may be.
  Arguments(nb::handle sequence, size_t count) {
    const bool is_list = PyList_Check(sequence.ptr());
    if (!is_list && !PyTuple_Check(sequence.ptr())) fail(PyExc_TypeError, "arguments are a tuple or a list");
#ifndef Py_LIMITED_API
    data_ = PySequence_Fast_ITEMS(sequence.ptr());
    size_ = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
#else
    const Py_ssize_t given = is_list ? PyList_Size(sequence.ptr()) : PyTuple_Size(sequence.ptr());
    for (Py_ssize_t i = 0; i < given; ++i)
      copied_.push_back(is_list ? PyList_GetItem(sequence.ptr(), i) : PyTuple_GetItem(sequence.ptr(), i));
    data_ = copied_.data();
    size_ = copied_.size();
#endif
    if (size_ < count) fail(PyExc_IndexError, "there are fewer arguments than the program has");
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  PyObject* const* data() const { return data_; }
  nb::handle operator[](int position) const { return data_[position]; }

 private:
  [[noreturn]] static void fail(PyObject* type, const char* message) {
    PyErr_SetString(type, message);
    throw nb::python_error();
  }

#ifdef Py_LIMITED_API
  std::vector<PyObject*> copied_;
#endif
  PyObject* const* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ingot::python
