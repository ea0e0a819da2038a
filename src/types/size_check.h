// SPDX-License-Identifier: Apache-2.0
// A condition that the sizes of a call have to meet: checked once per new shape, before anything runs; if a
// step determines one of the sizes, right after that step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "types/predicate.h"

namespace ingot::core {

// Numbers are stored in engine files: never renumber, only append.
enum class CheckKind : uint8_t {
  kGuard = 0,      // the program was traced for these sizes, and may differ for others
  kAssertion = 1,  // the user's program asserts it
  kBounds = 2,     // an operator would read or write outside of its operands
};
std::string_view name_of(CheckKind kind);  // "guard", "assertion", "bounds"

struct SizeCheck {
  CheckKind kind = CheckKind::kGuard;
  Predicate condition;  // over symbols that inputs, or steps of the main program, bind
  std::string message;  // kAssertion: the user's; kBounds: what asks for it, such as "slice"
  std::string node;     // of the user's program, "" if unknown
  std::string source;   // "file.py:214 in forward", "" if unknown
  bool operator==(const SizeCheck&) const = default;
};

// Symbols as the user knows them: "x.shape[0]".
using SpelledSymbols = std::map<std::string, std::string, std::less<>>;
SymbolSpelling spelled_by(const SpelledSymbols& names);

// Throws UserError INGOT-U312 with the condition, the values that break it, node and source line.
[[noreturn]] void fail_check(const SizeCheck& check, const SpelledSymbols& names, const SymbolValues& values);

}  // namespace ingot::core
