// SPDX-License-Identifier: Apache-2.0
// ingot._core.Group: the connections of this rank to the others.
#include "group.h"

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "status.h"

namespace ingot::python {

Group::Group(const std::string& address, int rank, int size, const std::string& name, int64_t deadline_ms) {
  const ingot_group_options options{.struct_size = sizeof(options),
                                    .name = name.c_str(),
                                    .address = address.c_str(),
                                    .rank = rank,
                                    .size = size,
                                    .deadline_ms = deadline_ms};
  ingot_group* group = nullptr;
  ingot_status* status = nullptr;
  {
    const nanobind::gil_scoped_release no_gil;
    status = ingot_group_join(&options, &group);
  }
  check(status);
  handle_ = std::shared_ptr<ingot_group>(group, &ingot_group_free);
}

void bind_group(nanobind::module_& module) {
  namespace nb = nanobind;
  nb::class_<Group>(module, "Group")
      .def(nb::init<const std::string&, int, int, const std::string&, int64_t>(), nb::arg("address"),
           nb::arg("rank"), nb::arg("size"), nb::arg("name"), nb::arg("deadline_ms"))
      .def("rank", [](const Group& group) { return ingot_group_rank(group.handle().get()); })
      .def("size", [](const Group& group) { return ingot_group_size(group.handle().get()); })
      .def("is_usable", [](const Group& group) { return ingot_group_is_usable(group.handle().get()) != 0; });
  module.def(
      "share_group",
      [](const std::string& name, const Group* group) {
        check(ingot_group_share(name.c_str(), group == nullptr ? nullptr : group->handle().get()));
      },
      nb::arg("name"), nb::arg("group").none());
}

}  // namespace ingot::python
