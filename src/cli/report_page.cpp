// SPDX-License-Identifier: Apache-2.0
#include "cli/report_page.h"

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "ingot/build.h"

namespace ingot::cli {

void write_report_page(const std::string& path, const nlohmann::json& engine) {
  const nlohmann::json report{{"engines", nlohmann::json::array({engine})}};
  ingot_text* html = nullptr;
  check(ingot_report_page(report.dump().c_str(), &html));
  OutputFile file(path);
  file.write(take_text(html));
  file.finish();
}

}  // namespace ingot::cli
