// SPDX-License-Identifier: Apache-2.0
// The attributes of `weight` and `state`: the weight or state of the model, or the output of init, that the
// node reads. Numbers are -1 if there is none: attributes have no optional values.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "ir/attribute.h"
#include "types/tensor_type.h"

namespace ingot::core::ops {

struct ModelSource {
  std::string name;  // in the model; for people and for refits, never an identity: any text is allowed
  DType dtype = DType::kF32;
  std::vector<Dim> shape;
  Layout layout;             // not row-major only for results of init
  int64_t source = -1;       // index among the model's weights or states
  int64_t init_output = -1;  // for results of init: the index of the output
  static constexpr auto fields() {
    return std::tuple{Field{"name", &ModelSource::name},     Field{"dtype", &ModelSource::dtype},
                      Field{"shape", &ModelSource::shape},   Field{"layout", &ModelSource::layout},
                      Field{"source", &ModelSource::source}, Field{"init_output", &ModelSource::init_output}};
  }
};

}  // namespace ingot::core::ops
