// SPDX-License-Identifier: Apache-2.0
// ingot_explain: the pages of docs/errors.md, compiled into a table.
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

constexpr std::string_view kPrefix = "INGOT-";

// Case-insensitive comparison of letters.
bool equals(std::string_view given, std::string_view known) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::ranges::equal(given, known, {}, upper);
}

}  // namespace

extern "C" const char* ingot_explain(const char* code) {
  if (code == nullptr || *code == '\0') return nullptr;
  const auto is_it = [given = std::string_view(code)](std::string_view known) {
    return equals(given, known) || equals(given, known.substr(std::min(known.size(), kPrefix.size())));
  };
  const auto page = std::ranges::find_if(kPages, is_it, &Page::code);
  return page == kPages.end() ? nullptr : page->text;
}
