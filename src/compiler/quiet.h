// SPDX-License-Identifier: Apache-2.0
// Timings beside other runs of the process: a run that begins during one disturbs it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "support/error.h"

namespace ingot::core {

constexpr const char* kCancelled = "INGOT-U010";  // the code of a cancelled build's error

// With true: returns once no run is under way; with false: at once. Returns how many runs have begun so far;
// negative to cancel.
using QuietCallback = std::function<int64_t(bool waits)>;

// Repeats what a run of others has disturbed.
class Quiet {
 public:
  // `callback` may be empty: nothing disturbs.
  explicit Quiet(QuietCallback callback) : callback_(std::move(callback)) {}

  // The result of the first `time()` during which no run began. Throws UserError kCancelled if the caller
  // cancels.
  template <typename Time>
  auto undisturbed(const Time& time) {
    while (true) {
      wait();
      auto result = time();
      if (ask(false) == begun_) return result;
    }
  }

  bool is_alone() const { return !callback_; }
  void wait() { begun_ = ask(true); }
  // Whether no run began since the last answer. If one did, waits until none is under way.
  bool was_undisturbed() {
    if (ask(false) == begun_) return true;
    wait();
    return false;
  }

 private:
  int64_t ask(bool waits) const {
    const int64_t begun = callback_ ? callback_(waits) : 0;
    if (begun < 0) throw UserError(kCancelled, "the build was cancelled");
    return begun;
  }

  QuietCallback callback_;
  int64_t begun_ = 0;
};

}  // namespace ingot::core
