// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/composites/tokens.h"

#include <algorithm>
#include <array>

#include "support/error.h"

namespace ingot::core::aten {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kWordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
constexpr std::array<std::string_view, 7> kLongSymbols = {"**", "//", "<=", ">=", "==", "!=", "->"};

class RowReader {
 public:
  explicit RowReader(std::string_view text) : rest_(text) {}

  std::vector<std::vector<Token>> rows() {
    while (!rest_.empty()) {
      if (rest_.front() == '\n') {
        end_line();
      } else if (rest_.front() == ' ') {
        take(1);
      } else if (rest_.front() == '#') {
        take(std::min(rest_.find('\n'), rest_.size()));
      } else {
        add(next());
      }
    }
    for (std::vector<Token>& row : rows_) row.push_back({});
    return std::move(rows_);
  }

 private:
  void end_line() {
    take(1);
    if (depth_ > 0) return;
    is_new_ = rest_.empty() || rest_.front() != ' ';
    const bool has_tokens = !rows_.empty() && rows_.back().back().kind != Token::Kind::kLineEnd;
    if (has_tokens) rows_.back().push_back({Token::Kind::kLineEnd, {}});
  }
  void add(const Token& token) {
    if (is_new_) rows_.emplace_back();
    is_new_ = false;
    if (token.text == "(" || token.text == "[") ++depth_;
    if (token.text == ")" || token.text == "]") --depth_;
    rows_.back().push_back(token);
  }
  Token next() {
    const char first = rest_.front();
    if (first == '"') {
      take(1);
      const Token token{Token::Kind::kText, take(rest_.find('"'))};
      take(1);
      return token;
    }
    if (kDigits.find(first) != std::string_view::npos) return {Token::Kind::kNumber, take(number_length())};
    if (first != '.' && kWordLetters.find(first) != std::string_view::npos)
      return {Token::Kind::kName, take(std::min(rest_.find_first_not_of(kWordLetters), rest_.size()))};
    for (const std::string_view symbol : kLongSymbols) {
      if (rest_.starts_with(symbol)) return {Token::Kind::kSymbol, take(symbol.size())};
    }
    return {Token::Kind::kSymbol, take(1)};
  }
  // "12", "0.5", "1e-8"
  size_t number_length() const {
    size_t length = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
    if (length == rest_.size() || rest_[length] != 'e') return length;
    length += rest_[length + 1] == '-' ? 2 : 1;
    return std::min(rest_.find_first_not_of(kDigits, length), rest_.size());
  }
  std::string_view take(size_t length) {
    invariant(length <= rest_.size(), "a row of composites.def ends inside of a word");
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view rest_;
  std::vector<std::vector<Token>> rows_;
  int depth_ = 0;
  bool is_new_ = true;
};

}  // namespace

std::vector<std::vector<Token>> rows_of_tokens(std::string_view text) { return RowReader(text).rows(); }

}  // namespace ingot::core::aten
