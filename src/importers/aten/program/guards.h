// SPDX-License-Identifier: Apache-2.0
// The conditions under which a program was traced: which of torch's guards an engine has to check.
//
// Program::guards holds Python conditions over L['x'].size()[0] or symbols: "(L['x'].size()[0] % 2) == 0".
// One with a comment adds no condition: it says who asks for an equal one, "s0 % 2 == 0  # user model.py:7 in
// forward".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "types/size_check.h"

namespace ingot::core::aten {

// The origin of a guard.
enum class GuardOrigin {
  kUser,    // "user": a line of the user's model, or of other code outside of torch
  kTorch,   // "torch": torch, while it traced an operator
  kLayout,  // "layout": torch, to determine a tensor's memory layout; no value depends on it
};

struct GuardReading {
  size_t guard;        // index into Program::guards
  SizeCheck check;     // if `reason` is empty
  std::string reason;  // why no engine can check it
};

// All guards that are relevant. Omits those that hold for all sizes in range, and those that only record that
// torch traces with sizes of 2 or more: for every size and, if no line of the user's is known to ask for it,
// that a tensor's size is not 0 or 1, or its memory layout. docs/design/007 has the reasons.
std::vector<GuardReading> read_guards(const Program& program);

// Symbols as the user knows them: "x.shape[0]".
SpelledSymbols spelled_symbols(const Graph& graph);

// The conditions of `read_guards`; UnsupportedError INGOT-N524 if an engine cannot check one of them.
std::vector<SizeCheck> guard_checks(const Program& program);

}  // namespace ingot::core::aten
