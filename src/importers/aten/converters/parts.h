// SPDX-License-Identifier: Apache-2.0
// Complex calls by real ones. A complex value is imported as a tensor of reals with one more dim of size 2 at
// the end, as torch.view_as_real shows it; `Parts` are its two halves.
#pragma once

#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {

struct Parts {
  Term re, im;
};

// The parts of a pair. Those of a value made by `joined` are its operands: chains keep them apart.
Parts parts_of(Call& call, core::Value* pair);
// The same of a tensor that view_as_real may have made: a part that was joined, or what `selected` builds.
core::Value* selected_or_part(Call& call, core::Value* value, size_t axis, const Dim& index);
core::Value* joined(Call& call, core::Value* re, core::Value* im);

}  // namespace ingot::core::aten
