// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/stored_constant.h"

namespace ingot::core::aten {

OwnedView as_pairs(OwnedView value) {
  TensorView& view = value.view;
  if (!is_complex(view.dtype)) return value;
  view.dtype = component_of(view.dtype);
  view.shape.push_back(2);
  for (int64_t& stride : view.strides) stride *= 2;
  if (!view.strides.empty() || view.shape.size() == 1) view.strides.push_back(1);
  return value;
}

core::Value* add_constant(core::Graph& graph, const OwnedView& value) {
  return graph.add_constant(to_dense(as_pairs(value).view));
}

}  // namespace ingot::core::aten
