// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "ingot/build.h"
#include "report/page.h"

using namespace ingot::core;

extern "C" ingot_status* ingot_report_page(const char* json, ingot_text** html) {
  return api::guard([&] {
    api::require(json, "json");
    api::require(html, "html");
    *html = api::make_text(
        report_page(json, [](const std::string& code) { return ingot_explain(code.c_str()); }));
  });
}
