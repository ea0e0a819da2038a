// SPDX-License-Identifier: Apache-2.0
// Small ATen programs, written call by call, and their results after import.
#pragma once

#include <string>
#include <vector>

#include "importers/aten/import.h"

namespace ingot::core::aten::test {

// A list of numbers as an argument.
Argument list(const std::vector<int64_t>& numbers);
Argument values(const std::vector<ValueId>& ids);

class ProgramWriter {
 public:
  ValueId input(const std::string& name, Shape shape, DType dtype = DType::kF32);
  ValueId parameter(const std::string& name, const std::vector<double>& numbers);  // of one dim
  ValueId integer(const std::string& name, Dim size);                              // a SymInt of the program

  // Appends a call with positional arguments; returns its one result, of that type.
  ValueId call(const std::string& target, std::vector<Argument> arguments, Shape shape,
               DType dtype = DType::kF32);
  std::vector<ValueId> call_for_several(const std::string& target, std::vector<Argument> arguments,
                                        const std::vector<Shape>& shapes, DType dtype = DType::kF32);
  void output(ValueId id) { program.graph.outputs.push_back({Argument{id}, OutputKind::kUser, {}}); }
  void mutation(ValueId id, const std::string& input) {
    program.graph.outputs.push_back({Argument{id}, OutputKind::kUserInputMutation, input});
  }

  Program program;

 private:
  ValueId add(const std::string& name, Shape shape, DType dtype);
};

// Imports the program and evaluates it; inputs are filled row by row from `numbers`, shapes from the program
// with `symbols` bound. Each result is one flat list, outputs first, then the new values of states by name.
std::vector<std::vector<double>> results(const Program& program,
                                         const std::vector<std::vector<double>>& numbers,
                                         const SymbolValues& symbols = {});

// The text of the imported graph's nodes, one per line.
std::string imported_text(const Program& program);

}  // namespace ingot::core::aten::test
