// SPDX-License-Identifier: Apache-2.0
// Groups of ranks, which run one engine together: processes, or threads of one.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <chrono>
#include <memory>
#include <string>

#include "ingot/error.h"
#include "ingot/ingot.h"

namespace ingot {

// A port at which rank 0 listens before the ranks meet, so that the others can be told where.
class GroupListener {
 public:
  // "host:port"; port 0: one that is free. UserError INGOT-U353.
  explicit GroupListener(const std::string& address) {
    ingot_group_listener* listener = nullptr;
    detail::check(ingot_group_listen(address.c_str(), &listener));
    handle_ = std::shared_ptr<ingot_group_listener>(listener, &ingot_group_listener_free);
  }

  std::string address() const { return ingot_group_listener_address(handle()); }
  ingot_group_listener* handle() const noexcept { return handle_.get(); }

 private:
  std::shared_ptr<ingot_group_listener> handle_;
};

struct GroupOptions {
  std::string address;  // "host:port", at which rank 0 listens
  int rank = 0, size = 1;
  std::chrono::milliseconds deadline{60'000};  // for all ranks to join, and for each collective
  std::string name;                            // for messages; the same for all ranks
  const GroupListener* listener = nullptr;     // of rank 0, instead of the address
};

// The connections of one rank to the others. Cheap to copy; contexts that use it keep it. When a rank ends,
// hangs or runs something else, the runs of all ranks throw DeviceError (INGOT-D350, D351) within the
// deadline, and the group and its contexts are unusable from then on (D352): join a new group, and make a new
// context.
class Group {
 public:
  // Returns when all ranks have joined. UserError INGOT-U353 for contradictory options, DeviceError
  // INGOT-D350 names the ranks that did not join within the deadline.
  explicit Group(const GroupOptions& options) {
    const ingot_group_options given{sizeof(ingot_group_options),
                                    options.name.c_str(),
                                    options.address.c_str(),
                                    options.rank,
                                    options.size,
                                    options.deadline.count(),
                                    options.listener == nullptr ? nullptr : options.listener->handle()};
    ingot_group* group = nullptr;
    detail::check(ingot_group_join(&given, &group));
    handle_ = std::shared_ptr<ingot_group>(group, &ingot_group_free);
  }

  int rank() const noexcept { return ingot_group_rank(handle()); }
  int size() const noexcept { return ingot_group_size(handle()); }
  bool is_usable() const noexcept { return ingot_group_is_usable(handle()) != 0; }
  ingot_group* handle() const noexcept { return handle_.get(); }  // of the C API, still owned by this object

 private:
  std::shared_ptr<ingot_group> handle_;
};

// While this exists, a thread tells the other ranks that this one is alive: their collectives wait for it, as
// long as it takes to compile or load something.
class GroupWork {
 public:
  explicit GroupWork(const Group& group) {
    ingot_group_work* work = nullptr;
    detail::check(ingot_group_begin_work(group.handle(), &work));
    handle_ = std::unique_ptr<ingot_group_work, void (*)(ingot_group_work*)>(work, &ingot_group_end_work);
  }

 private:
  std::unique_ptr<ingot_group_work, void (*)(ingot_group_work*)> handle_{nullptr, &ingot_group_end_work};
};

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
