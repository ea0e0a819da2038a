// SPDX-License-Identifier: Apache-2.0
// Who may use a file. Windows says so by lists of users; here they become owner and permissions as POSIX has
// them, as far as our callers ask: is it ours, and ours alone. Private to src/support/windows/.
#pragma once

#include <windows.h>

#include <cstdint>

namespace ingot::core {

struct FileAccess {
  uint32_t owner = 1;        // 0: this user, an administrator, or the system
  uint32_t permissions = 0;  // 0700, or 0777 if others may do anything with it
};
FileAccess access_of(HANDLE file);

// For what this user, administrators and the system alone may use, and what is created in it.
class PrivateAccess {
 public:
  PrivateAccess();
  PrivateAccess(const PrivateAccess&) = delete;
  PrivateAccess& operator=(const PrivateAccess&) = delete;
  ~PrivateAccess();

  // Null if the system does not say who this user is; `errno` is set then.
  SECURITY_ATTRIBUTES* get() { return attributes_.lpSecurityDescriptor == nullptr ? nullptr : &attributes_; }

 private:
  SECURITY_ATTRIBUTES attributes_{};
};

}  // namespace ingot::core
