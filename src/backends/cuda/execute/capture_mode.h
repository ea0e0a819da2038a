// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// While it exists, the calling thread may allocate and load code although it, or another one, is capturing.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED, then that of before
};

}  // namespace ingot::core::cuda
