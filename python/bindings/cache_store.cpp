// SPDX-License-Identifier: Apache-2.0
#include "cache_store.h"

#include <string_view>
#include <utility>

#include "gil.h"

namespace ingot::python {
namespace nb = nanobind;
namespace {

int32_t fail(ingot_receive receive, void* receiver, const std::exception& error) {
  const std::string_view text = error.what();
  receive(receiver, text.data(), text.size());
  return 1;
}

// 0, or 1 after `receive` got the exception's text.
template <typename Call>
int32_t call_cache(ingot_receive receive, void* receiver, Call&& call) {
  const HeldGil gil;
  try {
    ask_gil(call);
    return 0;
  } catch (const nb::python_error& error) {
    const bool is_interrupt = error.matches(PyExc_KeyboardInterrupt);
    fail(receive, receiver, error);
    if (is_interrupt) PyErr_SetInterrupt();  // last, for whoever runs Python next: the build's progress
    return 1;
  } catch (const std::exception& error) {
    return fail(receive, receiver, error);
  }
}

}  // namespace

CacheStore::CacheStore(nb::object cache)
    : cache_(std::move(cache)),
      store_{
          .struct_size = sizeof(store_), .user = this, .load = &CacheStore::load, .save = &CacheStore::save} {
}

int32_t CacheStore::load(void* user, const char* key, ingot_receive receive, void* receiver) {
  return call_cache(receive, receiver, [&] {
    const nb::object found = static_cast<CacheStore*>(user)->cache_.attr("load")(key);
    if (found.is_none()) return;
    const nb::bytes bytes(found);  // of bytes, bytearray or memoryview
    receive(receiver, bytes.data(), bytes.size());
  });
}

int32_t CacheStore::save(void* user, const char* key, const void* data, size_t size, ingot_receive receive,
                         void* receiver) {
  return call_cache(receive, receiver,
                    [&] { static_cast<CacheStore*>(user)->cache_.attr("save")(key, nb::bytes(data, size)); });
}

}  // namespace ingot::python
