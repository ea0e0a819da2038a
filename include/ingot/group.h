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

struct GroupOptions {
  std::string address;  // "host:port", at which rank 0 listens
  int rank = 0, size = 1;
  std::chrono::milliseconds deadline{60'000};  // for all ranks to join, and for each collective
  std::string name;                            // for messages; the same for all ranks
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
                                    options.deadline.count()};
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

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
