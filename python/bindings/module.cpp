// SPDX-License-Identifier: Apache-2.0
// ingot._core: the C API for Python. It computes nothing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings.h"
#include "ingot/build.h"
#include "session.h"
#include "status.h"
#include "turn.h"

namespace nb = nanobind;
using ingot::python::check;
using ingot::python::Session;
using ingot::python::take_text;

namespace {

nb::list options() {
  nb::list rows;
  for (size_t i = 0; i < ingot_option_count(); ++i) {
    ingot_option_info info{};
    info.struct_size = sizeof(info);
    check(ingot_option_describe(i, &info));
    rows.append(nb::make_tuple(info.name, info.type, info.default_value, info.summary));
  }
  return rows;
}

std::string inspect_file(const std::filesystem::path& path) {
  ingot_text* text = nullptr;
  check(ingot_inspect_file(path.c_str(), &text));
  return take_text(text);
}

std::string report_page(const std::string& json) {
  ingot_text* html = nullptr;
  check(ingot_report_page(json.c_str(), &html));
  return take_text(html);
}

std::string metrics_text(const std::vector<std::string>& names, const std::vector<Session*>& engines) {
  std::vector<const char*> texts;
  std::vector<const ingot_engine*> handles;
  for (const std::string& name : names) texts.push_back(name.c_str());
  for (const Session* engine : engines) handles.push_back(engine->engine());
  ingot_text* text = nullptr;
  check(ingot_metrics_text(handles.size(), handles.data(), texts.data(), &text));
  return take_text(text);
}

}  // namespace

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // torch.compile keeps compiled functions until the process ends
  ingot::python::watch_forks();
  ingot::python::bind_group(module);
  ingot::python::bind_engine(module);
  ingot::python::bind_bisect(module);
  ingot::python::bind_builder(module);
  ingot::python::bind_export(module);
  ingot::python::bind_runner(module);
  ingot::python::bind_cache_session(module);
  ingot::python::bind_file(module);
  ingot::python::bind_tensor_file(module);
  module.def("version", &ingot_version);
  module.def("explain", &ingot_explain);
  module.def("options", &options);
  module.def("imports_operator",
             [](const std::string& target) { return ingot_imports_operator(target.c_str()) != 0; });
  module.def("verify_file",
             [](const std::filesystem::path& path) { check(ingot_verify_file(path.c_str())); });
  module.def("inspect_file", &inspect_file);
  module.def("report_page", &report_page);
  module.def("metrics_text", &metrics_text, nb::arg("names"), nb::arg("engines"));
  module.def("set_threads", [](int threads) { check(ingot_set_threads(threads)); });
  module.def("get_threads", &ingot_get_threads);
  module.def("set_spin", [](int microseconds) { check(ingot_set_spin(microseconds)); });
}
