// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/read_context.h"

#include <fmt/format.h>

#include "support/error.h"

namespace ingot::core::pt2 {

void refuse_unknown(const ReadContext& context, std::string_view what, std::string_view value) {
  throw UnsupportedError(
      "INGOT-N507",
      fmt::format("{} '{}' is unknown; the program's schema is {}", what, value, context.schema),
      "save the program with torch 2.11 to 2.15, or use a newer Ingot");
}

}  // namespace ingot::core::pt2
