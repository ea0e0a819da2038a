// SPDX-License-Identifier: Apache-2.0
// Weights that stay on a GPU, and those that runs copy there.
#include "api/runtime/weight_budget.h"

#include <fmt/core.h>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstWeightMemory = offsetof(ingot_weight_memory, available) + sizeof(size_t);

}  // namespace

WeightBudget ingot::core::api::read_weight_budget(const char* text) {
  if (const auto budget = parse_weight_budget(text)) return *budget;
  throw UserError("INGOT-U336", fmt::format("'{}' is not a budget for weights", text),
                  "pass all, auto, a percentage (50%) or bytes (1500000000, 1.5GB, 1.5GiB)");
}

extern "C" {

ingot_status* ingot_engine_weight_memory(const ingot_engine* engine, ingot_weight_memory* memory) {
  return api::guard([&] {
    api::require(engine, "engine");
    const WeightMemory used = api::runnable(*engine)->weight_memory();
    const ingot_weight_memory filled{.struct_size = 0,
                                     .total = used.total,
                                     .minimum = used.minimum,
                                     .budget = used.budget,
                                     .resident = used.resident,
                                     .ring = used.ring,
                                     .available = used.available};
    api::write_struct(memory, filled, kFirstWeightMemory, "ingot_weight_memory");
  });
}

ingot_status* ingot_engine_set_weight_budget(ingot_engine* engine, const char* budget) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(budget, "budget");
    api::runnable(*engine)->set_weight_budget(api::read_weight_budget(budget));
  });
}

}  // extern "C"
