// SPDX-License-Identifier: Apache-2.0
// ingot._core.Group: the connections of this rank to the others.
#include "group.h"

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "gil.h"
#include "status.h"

namespace ingot::python {

namespace {

// ingot_group_listener.
class GroupListener {
 public:
  explicit GroupListener(const std::string& address) {
    ingot_group_listener* listener = nullptr;
    check(ingot_group_listen(address.c_str(), &listener));
    handle_.reset(listener);
  }
  const ingot_group_listener* handle() const { return handle_.get(); }

 private:
  std::unique_ptr<ingot_group_listener, decltype(&ingot_group_listener_free)> handle_{
      nullptr, &ingot_group_listener_free};
};

// ingot_group_work.
class GroupWork {
 public:
  explicit GroupWork(const Group& group) {
    ingot_group_work* work = nullptr;
    check(ingot_group_begin_work(group.handle().get(), &work));
    handle_.reset(work);
  }
  void end() { handle_.reset(); }

 private:
  std::unique_ptr<ingot_group_work, decltype(&ingot_group_end_work)> handle_{nullptr, &ingot_group_end_work};
};

}  // namespace

Group::Group(const std::string& address, int rank, int size, const std::string& name, int64_t deadline_ms,
             const ingot_group_listener* listener) {
  const ingot_group_options options{.struct_size = sizeof(options),
                                    .name = name.c_str(),
                                    .address = address.c_str(),
                                    .rank = rank,
                                    .size = size,
                                    .deadline_ms = deadline_ms,
                                    .listener = listener};
  ingot_group* group = nullptr;
  ingot_status* status = nullptr;
  {
    const ReleasedGil no_gil;
    status = ingot_group_join(&options, &group);
  }
  check(status);
  handle_ = std::shared_ptr<ingot_group>(group, &ingot_group_free);
}

void bind_group(nanobind::module_& module) {
  namespace nb = nanobind;
  nb::class_<GroupListener>(module, "GroupListener")
      .def(nb::init<const std::string&>(), nb::arg("address"))
      .def("address", [](const GroupListener& listener) {
        return std::string(ingot_group_listener_address(listener.handle()));
      });
  nb::class_<GroupWork>(module, "GroupWork")
      .def(nb::init<const Group&>(), nb::arg("group"))
      .def("end", &GroupWork::end, nb::call_guard<ReleasedGil>());
  nb::class_<Group>(module, "Group")
      .def(
          "__init__",
          [](Group* self, const std::string& address, int rank, int size, const std::string& name,
             int64_t deadline_ms, const GroupListener* listener) {
            new (self) Group(address, rank, size, name, deadline_ms,
                             listener == nullptr ? nullptr : listener->handle());
          },
          nb::arg("address"), nb::arg("rank"), nb::arg("size"), nb::arg("name"), nb::arg("deadline_ms"),
          nb::arg("listener").none() = nb::none())
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
