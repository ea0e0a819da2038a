// SPDX-License-Identifier: Apache-2.0
// What all calls that build give to the C API.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <vector>

#include "ingot/build.h"

namespace ingot::python {

namespace nb = nanobind;

// Strings by name, as the C API takes them.
struct TextRows {
  explicit TextRows(const nb::dict& entries) {
    for (const auto& [name, value] : entries) {
      texts.push_back(nb::cast<std::string>(name));
      texts.push_back(nb::cast<std::string>(value));
    }
    for (size_t i = 0; i < texts.size(); i += 2) rows.push_back({texts[i].c_str(), texts[i + 1].c_str()});
  }

  std::vector<std::string> texts;
  std::vector<ingot_option> rows;
};

struct Options {
  explicit Options(const nb::dict& given, const nb::dict& entries = {}) : options(given), metadata(entries) {}

  // Refers to this object's rows.
  ingot_build_options for_build(ingot_progress progress = nullptr, void* user = nullptr,
                                ingot_session* session = nullptr,
                                const ingot_cache_store* store = nullptr) const {
    return {.struct_size = sizeof(ingot_build_options),
            .options = options.rows.data(),
            .option_count = options.rows.size(),
            .progress = progress,
            .user = user,
            .metadata = metadata.rows.data(),
            .metadata_count = metadata.rows.size(),
            .output = nullptr,
            .session = session,
            .store = store,
            .quiet = nullptr};
  }

  TextRows options, metadata;
};

// State of a build's progress callback into Python.
struct ProgressState {
  nb::object callback;
  nb::object quiet = nb::none();  // quiet(waits) of ingot_quiet; None: nothing else runs
  std::exception_ptr failure;  // raised by the callback or a signal's handler: the cancelled call raises it
};

// An ingot_progress and an ingot_quiet; `user`: a ProgressState.
int32_t report_progress(void* user, const char* phase, size_t done, size_t total, double remaining);
int64_t ask_quiet(void* user, int32_t waits);

}  // namespace ingot::python
