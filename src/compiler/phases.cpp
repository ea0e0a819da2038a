// SPDX-License-Identifier: Apache-2.0
#include "compiler/phases.h"

#include <utility>

#include "compiler/quiet.h"
#include "support/error.h"

namespace ingot::core {

Phases::Phases(std::string first, ProgressCallback progress)
    : progress_(std::move(progress)), name_(std::move(first)), start_(Clock::now()) {}

void Phases::begin(std::string name) {
  const Clock::time_point now = Clock::now();
  ended_.push_back({std::move(name_), std::chrono::duration<double>(now - start_).count()});
  name_ = std::move(name);
  start_ = now;
  report(0, 1);
}

void Phases::report(size_t done, size_t total) {
  const double left =
      done == 0 ? -1 : seconds() * static_cast<double>(total - done) / static_cast<double>(done);
  if (progress_ && !progress_({name_, done, total, left}))
    throw UserError(kCancelled, "the build was cancelled");
}

std::vector<Phases::Phase> Phases::phases() const {
  std::vector<Phase> all = ended_;
  all.push_back({name_, seconds()});
  return all;
}

double Phases::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

}  // namespace ingot::core
