// SPDX-License-Identifier: Apache-2.0
// ONNX models for viewers, as bytes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "bindings.h"
#include "gil.h"
#include "ingot/build.h"
#include "session.h"
#include "status.h"

namespace ingot::python {
namespace {

nb::bytes take_bytes(ingot_text* text) {
  nb::bytes bytes(ingot_text_data(text), ingot_text_size(text));
  ingot_text_free(text);
  return bytes;
}

nb::bytes export_engine(const Session& session, const std::string& stage) {
  ingot_text* onnx = nullptr;
  check(ingot_engine_export_onnx(session.engine(), stage.c_str(), &onnx));
  return take_bytes(onnx);
}

nb::bytes export_file(const std::filesystem::path& path, const std::string& stage, const nb::dict& options) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, value] : options)
    texts.emplace_back(nb::cast<std::string>(name), nb::cast<std::string>(value));
  std::vector<ingot_option> rows;
  for (const auto& [name, value] : texts) rows.push_back({name.c_str(), value.c_str()});
  ingot_build_options given{};
  given.struct_size = sizeof(given);
  given.options = rows.data();
  given.option_count = rows.size();
  ingot_text* onnx = nullptr;
  ingot_status* status = nullptr;
  {
    const ReleasedGil no_gil;
    status = ingot_export_onnx(path.c_str(), stage.c_str(), &given, &onnx);
  }
  check(status);
  return take_bytes(onnx);
}

}  // namespace

void bind_export(nb::module_& module) {
  module.def("export_engine", &export_engine, nb::arg("engine"), nb::arg("stage"));
  module.def("export_file", &export_file, nb::arg("path"), nb::arg("stage"), nb::arg("options"));
}

}  // namespace ingot::python
