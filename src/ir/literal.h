// SPDX-License-Identifier: Apache-2.0
// Values of constants as text: `f32[2,2](1, 2, 3, 4)`, and `f32[768](sha256:...)` for large ones.
#pragma once

#include <string>

#include "support/scanner.h"
#include "types/tensor.h"

namespace ingot::core {

std::string print_literal(const Tensor& tensor);
Tensor parse_literal(Scanner& scanner);            // rejects digests: they do not contain the values
Tensor parse_literal_or_digest(Scanner& scanner);  // of a digest a tensor without data

}  // namespace ingot::core
