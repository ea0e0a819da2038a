// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/pass_file.h"

#include <fstream>
#include <stdexcept>

#include "support/file.h"

namespace ingot::core {
namespace {

constexpr std::string_view kCaseLine = "// -----\n";
constexpr std::string_view kAfterLine = "// ===\n";
constexpr std::string_view kUnchanged = "unchanged";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

PassCase read_case(std::string_view text) {
  PassCase result;
  text = trimmed(text);
  while (text.starts_with("//")) {
    const size_t end = text.find('\n') + 1;
    result.comment += text.substr(0, end);
    text.remove_prefix(end);
  }
  const size_t split = text.find(kAfterLine);
  if (split == std::string_view::npos) throw std::runtime_error("a case lacks its line \"// ===\"");
  result.before = trimmed(text.substr(0, split));
  const std::string_view after = trimmed(text.substr(split + kAfterLine.size()));
  if (after != kUnchanged) result.after = after;
  return result;
}

}  // namespace

std::vector<PassCase> read_pass_file(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  std::vector<PassCase> cases;
  size_t start = text.find("\n\n") + 1;  // after the licence
  while (start < text.size()) {
    const size_t end = std::min(text.find(kCaseLine, start), text.size());
    cases.push_back(read_case(std::string_view(text).substr(start, end - start)));
    start = end + kCaseLine.size();
  }
  return cases;
}

void write_pass_file(const std::filesystem::path& path, const std::vector<PassCase>& cases) {
  std::ofstream file(path);
  file << "// SPDX-License-Identifier: Apache-2.0\n\n";
  bool first = true;
  for (const PassCase& each : cases) {
    file << (first ? "" : kCaseLine) << each.comment << each.before << '\n' << kAfterLine;
    file << (each.after.empty() ? kUnchanged : std::string_view(each.after)) << '\n';
    first = false;
  }
}

}  // namespace ingot::core
