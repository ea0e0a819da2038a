// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/commands.h"

namespace ingot::cli {

// A dense tensor that somebody else owns.
struct Elements {
  const void* data;
  int32_t dtype;
  size_t count;
};
Elements elements_of(const Array& array);
Elements elements_of(const ingot_tensor& tensor);

// An element of a result and of its reference.
struct ElementPair {
  size_t position = 0;  // row-major
  double result = 0, reference = 0;
};

// How far a result is from its reference. Differences are infinite where NaN or infinity is in one only.
struct Difference {
  std::string problem;  // why they cannot be compared: the other fields are zero then; "": they can
  size_t elements = 0, outside = 0;  // outside: of the tolerance
  double largest = 0;                // |result - reference|
  ElementPair largest_at;
  double share = 0;  // the largest |result - reference| / tolerance: up to 1 is within
  ElementPair share_at;

  bool is_within() const { return problem.empty() && outside == 0; }
};
// The accuracy rule: the difference that is allowed from a reference whose root mean square is `rms`.
double allowed_by_rule(int32_t dtype, double reference, double rms);
// Integers and bools must be equal unless the tolerance is given. Of two floating dtypes the one with fewer
// digits decides the accuracy rule.
Difference difference_of(const Array& result, const Array& reference, const Tolerance& tolerance);

// ||result - reference|| / ||reference||, of as many elements; infinite where NaN or infinity is in one only.
double relative_error(const Elements& result, const Elements& reference);

// The reference for each result: by name or, if the names differ, by position. CommandError if one of them
// has more.
std::vector<const Array*> match_outputs(const std::vector<Array>& results,
                                        const std::vector<Array>& references);

}  // namespace ingot::cli
