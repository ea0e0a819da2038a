// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "importers/pt2/dim_reader.h"

namespace ingot::core::pt2 {

// State shared by all readers of one program.
struct ReadContext {
  DimReader dims;
  std::string schema;  // "8.20"
};

// UnsupportedError INGOT-N507: `value` is a union tag or enum value of a later schema.
[[noreturn]] void refuse_unknown(const ReadContext& context, std::string_view what, std::string_view value);

}  // namespace ingot::core::pt2
