// SPDX-License-Identifier: Apache-2.0
// ingot._core.bisect_pt2: the search for the rewrite that makes a result wrong.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <exception>

#include "bindings.h"
#include "build_calls.h"
#include "cache_store.h"
#include "gil.h"
#include "ingot/build.h"
#include "session.h"

namespace ingot::python {
namespace {

// A search's calls into Python.
struct Judging {
  ProgressState progress;
  nb::object judge;
  std::exception_ptr failure;
};

int32_t judge_engine(void* user, ingot_engine* engine) {
  EngineHandle owned(engine);
  auto& judging = *static_cast<Judging*>(user);
  const HeldGil gil;
  try {
    const nb::object answer = ask_gil([&] { return judging.judge(nb::cast(Session(std::move(owned)))); });
    return nb::cast<bool>(answer) ? 1 : 0;
  } catch (...) {  // exceptions must not cross the C API
    judging.failure = std::current_exception();
    return -1;
  }
}

int32_t report_search(void* user, const char* phase, size_t done, size_t total, double remaining) {
  return report_progress(&static_cast<Judging*>(user)->progress, phase, done, total, remaining);
}

// `judge(engine)`: whether its result is wrong. JSON, see ingot_bisect_pt2.
std::string bisect_pt2(const std::filesystem::path& path, const nb::dict& options, const nb::object& progress,
                       const nb::object& store, const nb::object& judge) {
  const Options given(options);
  const CacheStore cache_store(store);
  Judging judging{.progress = {.callback = progress}, .judge = judge, .failure = nullptr};
  const ingot_build_options build_options =
      given.for_build(&report_search, &judging, nullptr, cache_store.store());
  ingot_text* report = nullptr;
  ingot_status* status = nullptr;
  {
    const ReleasedGil no_gil;
    status = ingot_bisect_pt2(path.c_str(), &build_options, &judge_engine, &judging, &report);
  }
  for (const std::exception_ptr& failure : {judging.progress.failure, judging.failure}) {
    if (!failure) continue;
    ingot_status_free(status);
    ingot_text_free(report);
    std::rethrow_exception(failure);
  }
  check(status);
  return take_text(report);
}

}  // namespace

void bind_bisect(nb::module_& module) {
  module.def("bisect_pt2", &bisect_pt2, nb::arg("path"), nb::arg("options"), nb::arg("progress").none(),
             nb::arg("store").none(), nb::arg("judge"));
}

}  // namespace ingot::python
