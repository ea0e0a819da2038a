// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/copy_stream.h"

namespace ingot::core::cuda {
namespace {

Handle make_event(const Driver& driver) {
  constexpr unsigned kWithoutTimes = 2;
  Handle event = nullptr;
  check(driver, driver.create_event(&event, kWithoutTimes), "cuEventCreate");
  return event;
}

}  // namespace

void CopyStream::prepare(const Driver& driver, uint32_t count) {
  if (count == 0) return;
  constexpr unsigned kNonBlocking = 1;
  if (stream_ == nullptr) check(driver, driver.create_stream(&stream_, kNonBlocking), "cuStreamCreate");
  if (begun_ == nullptr) begun_ = make_event(driver);
  while (done_.size() < count) done_.push_back(make_event(driver));
}

void CopyStream::destroy(const Driver& driver) {
  for (const Handle event : done_) driver.destroy_event(event);
  if (begun_ != nullptr) driver.destroy_event(begun_);
  if (stream_ != nullptr) driver.destroy_stream(stream_);
  stream_ = begun_ = nullptr;
  done_.clear();
}

// A wait refers to the last record before it, so that one event serves all starts.
void CopyStream::fetch(const Driver& driver, Handle stream, uint32_t index, Address from, Address to,
                       size_t bytes) {
  check(driver, driver.record(begun_, stream), "cuEventRecord");
  check(driver, driver.wait(stream_, begun_, 0), "cuStreamWaitEvent");
  check(driver, driver.copy_on(to, from, bytes, stream_), "cuMemcpyAsync");
  check(driver, driver.record(done_[index], stream_), "cuEventRecord");
}

void CopyStream::wait(const Driver& driver, Handle stream, uint32_t index) const {
  check(driver, driver.wait(stream, done_[index], 0), "cuStreamWaitEvent");
}

}  // namespace ingot::core::cuda
