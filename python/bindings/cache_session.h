// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ingot/build.h"
#include "status.h"

namespace ingot::python {

// ingot_session: whose cache builds use.
class CacheSession {
 public:
  explicit CacheSession(uint64_t cache_bytes);
  ingot_session* handle() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(ingot_session* session) const { ingot_session_free(session); }
  };
  std::unique_ptr<ingot_session, Free> handle_;
};

inline ingot_session* handle_of(const CacheSession* session) {
  return session == nullptr ? nullptr : session->handle();
}

}  // namespace ingot::python
