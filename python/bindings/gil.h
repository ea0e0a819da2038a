// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <utility>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace ingot::python {

// When the interpreter ends, Python before 3.14 ends each thread that asks for the GIL (pthread_exit). glibc
// unwinds such a stack, and the process is aborted at the first noexcept function or `catch (...)`. Calls
// that may ask for the GIL go through `ask_gil`, where the thread sleeps until the process ends, as from 3.14
// on.
template <typename Call>
auto ask_gil(Call&& call) {
#ifdef __GLIBCXX__
  try {
    return std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    while (true) pause();
  }
#else
  return std::forward<Call>(call)();
#endif
}

// Other threads run Python meanwhile.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ~ReleasedGil() {
    ask_gil([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// For calls from C++ into Python, by any thread. What runs Python's own code goes through `ask_gil` too.
class HeldGil {
 public:
  HeldGil() : state_(ask_gil([] { return PyGILState_Ensure(); })) {}
  HeldGil(const HeldGil&) = delete;
  ~HeldGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace ingot::python
