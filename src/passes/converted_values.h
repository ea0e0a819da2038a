// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// The value in that dtype: itself, or a conversion.
Value* converted(Graph& graph, Value* value, DType dtype);

// The node whose result `value` shows, maybe moved by views of one operand; null for inputs.
Node* source_of(const Value* value);

// The dtype from which the value was widened before views moved it; its own if it was not.
DType dtype_before_widening(const Value* value);

// The value before it was widened from `dtype`, moved by the same views. Otherwise it is converted, which may
// be left out inside of a kernel.
Value* narrowed(Graph& graph, Value* value, DType dtype);

}  // namespace ingot::core
