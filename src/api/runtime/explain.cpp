// SPDX-License-Identifier: Apache-2.0
// ingot_explain: the pages of docs/errors.md, which the build turns into a table.
#include <algorithm>
#include <array>
#include <string_view>

#include "ingot/ingot.h"

namespace {

struct Page {
  std::string_view code;
  const char* text;
};

constexpr auto kPages = std::to_array<Page>({
#include "api/runtime/error_pages.inc"
});

}  // namespace

extern "C" const char* ingot_explain(const char* code) {
  if (code == nullptr || *code == '\0') return nullptr;
  const auto page = std::ranges::find(kPages, std::string_view(code), &Page::code);
  return page == kPages.end() ? nullptr : page->text;
}
