// SPDX-License-Identifier: Apache-2.0
// Rules for single steps, and helpers shared by all rules.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "engine/program.h"

namespace ingot::core {

// Throws UserError INGOT-U206 "NAME RULE" if `condition` is false.
void require(bool condition, std::string_view name, std::string_view rule);

// The role of a program: init may have outputs in the layouts of the weights that they become.
enum class ProgramRole { kMain, kInit };
void validate(const Program& program, size_t images, size_t weights, std::span<const std::string> devices,
              ProgramRole role);

// Requires the layout to map the indices of its shape one to one onto storage.
void check_layout(const TensorType& type, std::string_view what);

// The symbols that are bound at one point of a program.
class SymbolNames {
 public:
  void bind(const std::string& name) { names_.insert(name); }
  bool has(const std::string& name) const { return names_.contains(name); }
  void require_known(const Dim& dim, std::string_view user) const;

 private:
  std::set<std::string, std::less<>> names_;
};

// Checks everything that concerns this step alone; `symbols` are those bound before it.
void check_step(const Program& program, const Step& step, const SymbolNames& symbols, size_t images);

}  // namespace ingot::core
