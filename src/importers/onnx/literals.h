// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "ir/graph.h"

namespace ingot::core::onnx {

// Values of a graph that do not depend on its inputs, weights or sizes, computed when they are asked for.
class Literals {
 public:
  std::optional<Tensor> find(Value* value);

 private:
  std::map<const Value*, std::optional<Tensor>> known_;
};

}  // namespace ingot::core::onnx
