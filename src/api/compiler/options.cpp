// SPDX-License-Identifier: Apache-2.0
// ingot_option_*: the rows of compiler/options.h, whose texts are literals.
#include "compiler/options.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "ingot/build.h"

using namespace ingot::core;

namespace {
constexpr size_t kFirstOptionInfo = offsetof(ingot_option_info, summary) + sizeof(const char*);
}

extern "C" {

size_t ingot_option_count(void) { return all_options().size(); }

ingot_status* ingot_option_describe(size_t index, ingot_option_info* info) {
  return api::guard([&] {
    api::require_index(index, all_options().size(), "option");
    const OptionInfo& row = all_options()[index];
    const ingot_option_info filled{.struct_size = 0,
                                   .name = row.name.data(),
                                   .type = row.type.data(),
                                   .default_value = row.default_value.data(),
                                   .summary = row.summary.data()};
    api::write_struct(info, filled, kFirstOptionInfo, "ingot_option_info");
  });
}

}  // extern "C"
