// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/tensors.h"

using namespace ingot::core;

extern "C" ingot_status* ingot_engine_refit(ingot_engine* engine, size_t count, const char* const* names,
                                            const ingot_tensor* values) {
  return api::guard([&] {
    api::require(engine, "engine");
    if (count > 0) api::require(names, "names");
    if (count > 0) api::require(values, "values");
    SourceValues sources;
    for (size_t i = 0; i < count; ++i) {
      api::require(names[i], "names");
      sources.insert_or_assign(names[i], api::to_view(values[i]));
    }
    api::require_unchanged_model(*engine);
    api::runnable(*engine)->refit(sources);
  });
}
