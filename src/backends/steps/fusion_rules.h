// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ops/fusion_answer.h"

namespace ingot::core {

// Whether a contraction has, in its current form, a kernel template that takes an epilogue.
using ReadyRule = std::function<bool(const Node& contraction)>;

// Implementations of Backend::may_fuse_consumer and may_fuse_producer.
FusionAnswer may_take_consumer(const Node& root, const Node& consumer, const ReadyRule& is_ready);
FusionAnswer may_take_producer(const Node& root, const Node& producer, const ReadyRule& is_ready);

bool reads_data_dependent_indices(const Node& node);
// Whether every stage of `root` reads each element of `value`, which is one of its operands, at most once:
// computing it there repeats no work.
bool reads_each_element_once(const Node& root, const Value* value);

}  // namespace ingot::core
