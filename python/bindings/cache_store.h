// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "ingot/build.h"

namespace ingot::python {

// An object of Python with save(key, bytes) and load(key), which returns bytes or None, as a store of
// entries. None stands for none.
class CacheStore {
 public:
  explicit CacheStore(nanobind::object cache);
  const ingot_cache_store* store() const { return cache_.is_none() ? nullptr : &store_; }

 private:
  static int32_t load(void* user, const char* key, ingot_receive receive, void* receiver);
  static int32_t save(void* user, const char* key, const void* data, size_t size, ingot_receive receive,
                      void* receiver);

  nanobind::object cache_;
  ingot_cache_store store_;
};

}  // namespace ingot::python
