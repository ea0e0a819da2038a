// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::cuda {

// The body of attention; attention.cpp declares what it needs.
std::string attention_body(bool by_bulk_copies);

}  // namespace ingot::core::cuda
