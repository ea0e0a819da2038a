// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ingot::cli {

// Writes the HTML page about one engine; `engine`: an entry of "engines" as ingot_report_page takes it.
void write_report_page(const std::string& path, const nlohmann::json& engine);

}  // namespace ingot::cli
