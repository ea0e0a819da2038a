// SPDX-License-Identifier: Apache-2.0
#include "turn.h"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include "gil.h"

namespace ingot::python {
namespace {

int forks = 0;  // written only in a child, which has a single thread

}  // namespace

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

Turn::Turn() : forks_(forks) {}

std::unique_lock<std::mutex> Turn::take() {
  if (forks_ != forks) {  // still under the GIL
    mutex_.release();
    mutex_ = std::make_unique<std::mutex>();
    forks_ = forks;
  }
  const ReleasedGil no_gil;
  return std::unique_lock(*mutex_);
}

}  // namespace ingot::python
