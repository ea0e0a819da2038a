// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/runtime/checks.h"
#include "api/runtime/groups.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/tensors.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstRefitOptions = offsetof(ingot_refit_options, partial) + sizeof(int32_t);

ingot_refit_options read_options(const ingot_refit_options* given) {
  return given == nullptr ? ingot_refit_options{}
                          : api::read_struct(given, kFirstRefitOptions, "ingot_refit_options");
}

}  // namespace

extern "C" {

ingot_status* ingot_engine_refit(ingot_engine* engine, size_t count, const char* const* names,
                                 const ingot_tensor* values, const ingot_refit_options* options) {
  return api::guard([&] {
    const ingot_refit_options given = read_options(options);
    std::shared_ptr<const void> owner;  // released even if the refit fails
    if (given.release != nullptr) owner = {given.owner, given.release};
    api::require(engine, "engine");
    if (count > 0) api::require(names, "names");
    if (count > 0) api::require(values, "values");
    SourceValues sources;
    for (size_t i = 0; i < count; ++i) {
      api::require(names[i], "names");
      sources.insert_or_assign(names[i], OwnedView{api::to_view(values[i]), owner});
    }
    api::require_unchanged_model(*engine);
    api::runnable(*engine)->refit(sources, given.partial != 0 ? Coverage::kSome : Coverage::kAll,
                                  api::find_ranks(*engine->data, given.rank));
  });
}

ingot_status* ingot_engine_take_weights(ingot_engine* engine, const ingot_engine* copy) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(copy, "copy");
    api::runnable(*engine)->take_weights(*api::runnable(*copy));
  });
}

size_t ingot_engine_weight_count(const ingot_engine* engine) {
  return engine == nullptr ? 0 : engine->data->sources.size();
}

const char* ingot_engine_weight_name(const ingot_engine* engine, size_t index) {
  return index < ingot_engine_weight_count(engine) ? engine->data->sources[index].name.c_str() : nullptr;
}

int32_t ingot_engine_knows_tensor(const ingot_engine* engine, const char* name) {
  if (engine == nullptr || name == nullptr) return 0;
  const std::string_view wanted = name;
  const auto is_wanted = [&](const auto& tensor) { return tensor.name == wanted; };
  const EngineData& data = *engine->data;
  return std::ranges::any_of(data.sources, is_wanted) || std::ranges::any_of(data.others, is_wanted) ? 1 : 0;
}

}  // extern "C"
