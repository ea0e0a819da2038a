// SPDX-License-Identifier: Apache-2.0
// The attributes of `weight` and `state`: what of the model, or of its init program, the node stands for.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "ir/attribute.h"
#include "types/tensor_type.h"

namespace ingot::core::ops {

struct ModelSource {
  std::string name;  // in the model; for people and for refits, never an identity: any text may be one
  DType dtype = DType::kF32;
  std::vector<Dim> shape;
  Layout layout;             // other than row-major: of weights that the init program makes
  int64_t source = -1;       // position among the model's weights or states
  int64_t init_output = -1;  // of a weight that the init program makes: which of its outputs
  static constexpr auto fields() {
    return std::tuple{Field{"name", &ModelSource::name},     Field{"dtype", &ModelSource::dtype},
                      Field{"shape", &ModelSource::shape},   Field{"layout", &ModelSource::layout},
                      Field{"source", &ModelSource::source}, Field{"init_output", &ModelSource::init_output}};
  }
};

}  // namespace ingot::core::ops
