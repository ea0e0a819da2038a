// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

// The tuples in the last dim of `indices` as one tensor per axis of x that they index, from the first on. The
// first `batch` dims of both are the same: they are indexed by their own positions.
std::vector<Value*> index_tuples(Graph& graph, Value* x, Value* indices, int64_t batch);

}  // namespace ingot::core::onnx
