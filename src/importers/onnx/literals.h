// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace ingot::core::onnx {

// Values of a graph that do not depend on its inputs, weights or sizes, computed when they are asked for.
// Those that take much work are not known: they are data, and no parameters of operators.
class Literals {
 public:
  std::optional<Tensor> find(Value* value);

 private:
  // The nodes that compute `value`, operands first; nullopt if they read what is not known.
  std::optional<std::vector<Node*>> nodes_of(Value* value) const;
  bool is_known(const Value* value) const;

  std::map<const Value*, std::optional<Tensor>> known_;
  int64_t work_ = 0;
};

}  // namespace ingot::core::onnx
