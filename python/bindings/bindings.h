// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace ingot::python {

void bind_engine(nanobind::module_& module);
void bind_bisect(nanobind::module_& module);
void bind_builder(nanobind::module_& module);
void bind_group(nanobind::module_& module);
void bind_export(nanobind::module_& module);
void bind_runner(nanobind::module_& module);
void bind_cache_session(nanobind::module_& module);
void bind_file(nanobind::module_& module);
void bind_tensor_file(nanobind::module_& module);

}  // namespace ingot::python
