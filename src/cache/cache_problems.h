// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>

namespace ingot::core {

// What goes wrong with the stores of one build: lines of the log, or errors for those who ask for them.
// Thread-safe.
class CacheProblems {
 public:
  CacheProblems(std::function<void(const std::string& line)> log, bool is_strict)
      : log_(std::move(log)), is_strict_(is_strict) {}

  void add(const std::string& problem);
  void check() const;  // strict, and there is one: UserError INGOT-U028 with the first

 private:
  const std::function<void(const std::string&)> log_;
  const bool is_strict_;
  mutable std::mutex mutex_;
  std::string first_;
};

}  // namespace ingot::core
