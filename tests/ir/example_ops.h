// SPDX-License-Identifier: Apache-2.0
// Operators that only these tests have: one for each feature of records.
#pragma once

#include <string_view>

#include "ir/op.h"
#include "ir/text.h"

namespace ingot::core::example {

extern const Op copy;    // (x) -> x
extern const Op linear;  // (x: floating, weight: floating, bias optional) -> x's leading dims, weight's first
extern const Op halves;  // (x) -> two results
extern const Op join;    // (x...) -> the first
extern const Op report;  // (x) -> nothing, with side effect
extern const Op settings;  // every kind of attribute
extern const Op branch;    // control flow

const Op* find_op(std::string_view name);  // these, and the project's sources
Graph parse(std::string_view text);

}  // namespace ingot::core::example
