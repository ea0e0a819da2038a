// SPDX-License-Identifier: Apache-2.0
// Which rewrite of a pass makes a result wrong: a search over builds that stop early.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/pass_runner.h"

namespace ingot::core {

struct TriedBuild {
  bool is_wrong = false;
  std::vector<PassRunner::Timing> passes;  // those that ran
};
// Builds with this value of bisect_passes and, unless it is empty, this further entry of disable_passes.
using TryBuild = std::function<TriedBuild(const std::string& limit, const std::string& disabled)>;

struct Bisection {
  enum class Outcome {
    kRight,              // with all passes
    kWrongBeforePasses,  // without any optional pass: kernels or passes of level 0 are the cause
    kRewrite             // one was found
  };

  Outcome outcome = Outcome::kRight;
  // Of kRewrite:
  std::string pass;
  Rewrite rewrite;
  std::string limit;              // bisect_passes of the first build that is wrong
  std::string disable;            // the entry of disable_passes that leaves the node as it is
  bool is_right_without = false;  // the build with all passes and that entry

  size_t builds = 0;
};

// `whole`: the largest limit, that of all passes being "-1". The first build has the limit "0". Assumes that
// a result that is wrong after some rewrites stays wrong after more; the last two builds check what was
// found. UserError INGOT-U032 if builds contradict each other.
Bisection bisect(const std::string& whole, const TryBuild& try_build);

}  // namespace ingot::core
