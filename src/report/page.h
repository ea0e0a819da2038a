// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ingot::core {

// The text about an error code; null if there is none.
using Explain = std::function<const char*(const std::string& code)>;

// One HTML file about a compiled model, which loads nothing. `json`: as documented at the C API's
// ingot_report_page. UserError INGOT-U039 for anything else.
std::string report_page(std::string_view json, const Explain& explain);

}  // namespace ingot::core
