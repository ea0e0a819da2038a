// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/pt2/value_scope.h"

namespace ingot::core::pt2 {

// The schema's union `Argument`. Dictionaries become lists of [key, value] lists.
// UnsupportedError: INGOT-N506 custom objects, INGOT-N507 an unknown kind, INGOT-N509 complex numbers.
aten::Argument read_argument(Json value, ValueScope& scope);

// The names that an `Argument` which defines values (a graph's input, a node's output) declares, in order;
// nullopt for None, which is an undefined tensor.
struct Definition {
  std::vector<std::optional<std::string>> names;
  bool is_list = false;
};
Definition read_definition(Json value, const ReadContext& context);

// "torch.ops.aten.add.Tensor" without "torch.ops."; other targets unchanged.
std::string read_target(Json value);

}  // namespace ingot::core::pt2
