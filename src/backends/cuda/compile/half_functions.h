// SPDX-License-Identifier: Apache-2.0
// Functions for results that are rounded to f16 or bf16: by the GPU's exponential, with a relative error
// below 2^-14, in a third to a half of the instructions of their expansions.
#pragma once

#include <optional>
#include <string_view>

#include "loops/kernel.h"

namespace ingot::core::cuda {

// Their definitions, for the prelude.
std::string_view half_functions_text();
// The name of one; "" if there is none.
std::string_view half_function(const loops::Function& function);

// `kernel` with its functions expanded, but for these, where all that it stores are halves; `exactly`: all of
// them.
loops::Kernel expand_functions(loops::Kernel kernel, bool exactly);
std::optional<loops::Kernel> expand_functions(const std::optional<loops::Kernel>& kernel, bool exactly);

}  // namespace ingot::core::cuda
