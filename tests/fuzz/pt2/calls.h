// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/fuzz/pt2/documents.h"

namespace ingot::core::fuzz {

// Lets one node of the program call another operator, with arguments of the kinds that its schema has: values
// of the program where it takes tensors, numbers of any size elsewhere.
void change_call(Json& documents, std::minstd_rand& random);

}  // namespace ingot::core::fuzz
