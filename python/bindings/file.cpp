// SPDX-License-Identifier: Apache-2.0
// ingot._core.FileWriter: file output for Python, through the library's own writer.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "bindings.h"
#include "gil.h"
#include "ingot/ingot.h"
#include "status.h"

namespace ingot::python {
namespace {

class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path) {
    ingot_file* file = nullptr;
    ingot_status* status = nullptr;
    {
      const ReleasedGil no_gil;  // a pipe waits for its reader, which may be a thread of Python
      status = ingot_file_create(path.c_str(), &file);
    }
    check(status);
    file_.reset(file);
  }

  // Like `write` of Python's binary files.
  size_t write(nb::handle bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    ingot_status* status = nullptr;
    {
      const ReleasedGil no_gil;
      status = ingot_file_write(file_.get(), view.buf, static_cast<size_t>(view.len));
    }
    const auto size = static_cast<size_t>(view.len);
    PyBuffer_Release(&view);
    check(status);
    return size;
  }

  void finish() {
    ingot_status* status = nullptr;
    {
      const ReleasedGil no_gil;
      status = ingot_file_finish(file_.get());
    }
    check(status);
  }

  void drop() { file_.reset(); }

 private:
  struct Free {
    void operator()(ingot_file* file) const { ingot_file_free(file); }
  };
  std::unique_ptr<ingot_file, Free> file_;
};

}  // namespace

void bind_file(nb::module_& module) {
  nb::class_<FileWriter>(module, "FileWriter")
      .def(nb::init<const std::filesystem::path&>(), nb::arg("path"))
      .def("write", &FileWriter::write)
      .def("flush", [](FileWriter&) {})
      .def("finish", &FileWriter::finish)
      .def("drop", &FileWriter::drop);
}

}  // namespace ingot::python
