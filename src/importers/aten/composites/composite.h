// SPDX-License-Identifier: Apache-2.0
// The importer as data: what an overload means, as an expression of other ATen calls, or of nodes of ours.
// composites.def has the language and the rows by hand, generated.def those that
// tools/generate_composites.py traced from torch, core/*.def those of core operators;
// converters/composites.cpp evaluates them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

struct Expression {
  enum class Kind {
    kName,      // `text`: a parameter, a step or a dtype
    kLiteral,   // `literal`
    kCall,      // `text`(parts), named by `keywords`, "" for positional ones
    kOperator,  // `text`: "+", "<", "and", "not", "is" ... of one or two parts
    kChoice,    // parts[0] if parts[1] else parts[2]
    kList,      // [parts]
    kEach,      // [parts[0] for `text` in parts[1]], perhaps `if parts[2]`
    kItem,      // parts[0][parts[1]]
    kSlice,     // parts[0][parts[1]:parts[2]]
  };
  Kind kind = Kind::kLiteral;
  std::string text;
  Argument literal;
  std::vector<Expression> parts;
  std::vector<std::string> keywords;
};

struct Composite {
  enum class Kind {
    kDecomposable,  // torch may decompose it if it is available
    kWhole,         // front ends keep it
    kComplex,       // of calls with complex operands or results
    kKeptComplex,   // the same; torch may decompose it if it is available
    kBoth,          // kWhole and kComplex: its results are joined parts
    kLocal,         // a function of the table, not an operator
  };
  struct Step {
    std::string name;
    Expression value;
  };
  Kind kind = Kind::kDecomposable;
  std::string target;  // "aten.frac.default"; of local ones their name
  std::vector<std::string> parameters;
  std::vector<Step> steps;  // in order; later ones and the results may use earlier ones
  std::vector<Expression> results;
};

// Rows in the order of the table. The table is part of the program, so a parse error is a bug.
std::vector<Composite> parse_composites(std::string_view text);
const std::vector<Composite>& all_composites();  // of all tables

}  // namespace ingot::core::aten
