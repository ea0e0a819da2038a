// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_problems.h"

#include "support/error.h"

namespace ingot::core {

void CacheProblems::add(const std::string& problem) {
  const std::scoped_lock lock(mutex_);
  if (first_.empty()) first_ = problem;
  if (log_) log_(problem);
}

void CacheProblems::check() const {
  const std::scoped_lock lock(mutex_);
  if (is_strict_ && !first_.empty())
    throw UserError("INGOT-U028", first_,
                    "without strict_cache the build goes on, and compiles what it does not find");
}

}  // namespace ingot::core
