// SPDX-License-Identifier: Apache-2.0
#include "types/parse_type.h"

#include <fmt/core.h>

#include <charconv>

namespace ingot::core {
namespace {

Dim parse_dim_here(Scanner& scanner) {
  const size_t start = scanner.next_position();
  const std::string_view text = scanner.raw_until(",]\n");
  return scanner.located(start, [&] { return parse_dim(text); });
}

int64_t parse_size(const Scanner& scanner, std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty() || value < 0) {
    scanner.fail("expected a size");
  }
  return value;
}

DimRange parse_range(Scanner& scanner) {  // 1..16, 1..
  const std::string_view text = scanner.word();
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) scanner.fail("expected a range such as 1..16");
  DimRange range;
  range.min = parse_size(scanner, text.substr(0, dots));
  if (dots + 2 < text.size()) range.max = parse_size(scanner, text.substr(dots + 2));
  if (range.min > range.max) scanner.fail("the range is empty");
  return range;
}

// rank of "tp"/2 * "dp"/2 [8, 8, 7, 7]
RankSizes parse_rank_sizes(Scanner& scanner) {
  scanner.expect("rank");
  scanner.expect("of");
  RankSizes table;
  size_t entries = 1;
  do {
    RankAxis& axis = table.axes.emplace_back();
    axis.group = scanner.word_or_quoted();
    scanner.expect("/");
    axis.ranks = parse_size(scanner, scanner.word());
    entries *= static_cast<size_t>(axis.ranks);
  } while (scanner.accept("*"));
  scanner.expect("[");
  do table.sizes.push_back(parse_size(scanner, scanner.word()));
  while (scanner.accept(","));
  scanner.expect("]");
  if (table.sizes.size() != entries) scanner.fail("expected one size per rank");
  return table;
}

bool is_symbol(std::string_view word) {
  return is_word(word) && word[0] != '.' && (word[0] < '0' || word[0] > '9');
}

// Whether a symbol stands alone here, perhaps with its declaration.
bool symbol_follows(Scanner& scanner) {
  const size_t start = scanner.position();
  const bool is_alone = is_symbol(scanner.word()) &&
                        (scanner.next_is(",") || scanner.next_is("]") || scanner.next_is("in") ||
                         scanner.next_is("typical") || scanner.next_is("at") || scanner.next_is("by"));
  scanner.move_to(start);
  return is_alone;
}

template <typename ParseDim>
TensorType parse_row_major(Scanner& scanner, ParseDim&& parse_one_dim) {
  TensorType type;
  const auto dtype = parse_dtype(scanner.word());
  if (!dtype) scanner.fail("expected a type such as f32[2,3]");
  type.dtype = *dtype;
  scanner.expect("[");
  if (!scanner.accept("]")) {
    do {
      type.shape.push_back(parse_one_dim());
    } while (scanner.accept(","));
    scanner.expect("]");
  }
  return type;
}

template <typename ParseDim>
TensorType parse_type_with(Scanner& scanner, ParseDim&& parse_one_dim) {
  TensorType type = parse_row_major(scanner, parse_one_dim);
  if (!scanner.accept("{")) return type;
  const size_t start = scanner.position();
  const std::string text = fmt::format("{{{}}}", scanner.raw_until("}"));
  type.layout = scanner.located(start, [&] { return parse_layout(text, type.rank()); });
  scanner.expect("}");
  return type;
}

}  // namespace

TensorType parse_type(Scanner& scanner) {
  return parse_type_with(scanner, [&] { return parse_dim_here(scanner); });
}

TensorType parse_buffer_type(Scanner& scanner) {
  const size_t start = scanner.next_position();
  const auto parse_one_dim = [&] { return parse_dim_here(scanner); };
  TensorType type = parse_row_major(scanner, parse_one_dim);
  const size_t end = scanner.position();
  if (scanner.next_position() != end || !scanner.next_is("{")) return type;
  scanner.move_to(start);
  return parse_type_with(scanner, parse_one_dim);
}

TensorType parse_declaring_type(Scanner& scanner, SymbolTable& symbols) {
  return parse_type_with(scanner, [&]() -> Dim {
    if (!symbol_follows(scanner)) return parse_dim_here(scanner);
    const size_t start = scanner.position();
    std::string name(scanner.word());
    const bool is_known = symbols.contains(name);
    const bool says_more = !scanner.next_is(",") && !scanner.next_is("]");
    scanner.move_to(start);
    if (is_known && !says_more) {
      scanner.word();
    } else {
      parse_symbol(scanner, symbols);
    }
    return Dim::symbol(std::move(name));
  });
}

void parse_symbol(Scanner& scanner, SymbolTable& symbols) {
  const size_t start = scanner.next_position();
  const std::string name(scanner.word());
  if (!is_symbol(name)) scanner.fail(start, "expected a symbol");
  SymbolInfo info;
  if (scanner.accept("in")) info.range = parse_range(scanner);
  if (scanner.accept("typical")) info.typical = parse_size(scanner, scanner.word());
  if (scanner.accept("at")) {
    scanner.expect("most");
    info.upper_bound = parse_dim_here(scanner);
  }
  if (scanner.accept("by")) info.by_rank = parse_rank_sizes(scanner);
  const auto [entry, is_new] = symbols.try_emplace(name, info);
  if (!is_new && entry->second != info) scanner.fail(start, fmt::format("{} is declared twice", name));
}

}  // namespace ingot::core
