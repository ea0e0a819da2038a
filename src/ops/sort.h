// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Sort {
  int64_t axis = 0;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Sort::axis}, Field{"descending", &Sort::descending}};
  }
};

struct TopK {
  int64_t axis = 0, count = 1;
  bool largest = true;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &TopK::axis}, Field{"count", &TopK::count},
                      Field{"largest", &TopK::largest}};
  }
};

struct KthValue {  // rank: 0 is the smallest
  int64_t axis = 0, rank = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &KthValue::axis}, Field{"rank", &KthValue::rank}};
  }
};

struct ScatterReduce {  // reduce: sum, prod, mean, amax, amin
  int64_t axis = 0;
  std::string reduce = "sum";
  bool include_self = true;  // otherwise the first source element with an index replaces the element of x
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &ScatterReduce::axis}, Field{"reduce", &ScatterReduce::reduce},
                      Field{"include_self", &ScatterReduce::include_self}};
  }
};

}  // namespace ingot::core::ops
