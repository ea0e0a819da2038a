// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/weight_budget.h"

namespace ingot::core::api {

// UserError INGOT-U336 if it is not a budget.
WeightBudget read_weight_budget(const char* text);

}  // namespace ingot::core::api
