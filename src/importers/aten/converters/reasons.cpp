// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/reasons.h"

#include "importers/aten/schema/schemas.h"

namespace ingot::core::aten {

std::string reason_without_converter(std::string_view target) {
  return draws_random_numbers(target)
             ? "random numbers come from torch's generator, so that its seed decides them"
             : "Ingot has no such operator";
}

}  // namespace ingot::core::aten
