// SPDX-License-Identifier: Apache-2.0
#include "support/scanner.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace ingot::core {
namespace {

// The C library's functions depend on the locale.
bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

bool is_word(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_word_character); }

void Scanner::skip_blanks() {
  while (position_ < text_.size()) {
    if (is_blank(text_[position_])) {
      ++position_;
    } else if (text_.substr(position_).starts_with("--")) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      return;
    }
  }
}

size_t Scanner::next_position() {
  skip_blanks();
  return position_;
}

bool Scanner::at_end() { return next_position() == text_.size(); }

bool Scanner::next_is(std::string_view expected) {
  skip_blanks();
  if (!text_.substr(position_).starts_with(expected)) return false;
  const size_t end = position_ + expected.size();
  return !is_word_character(expected.back()) || end == text_.size() || !is_word_character(text_[end]);
}

bool Scanner::accept(std::string_view expected) {
  if (!next_is(expected)) return false;
  position_ += expected.size();
  return true;
}

void Scanner::expect(std::string_view expected) {
  if (!accept(expected)) fail(fmt::format("expected '{}'", expected));
}

std::string_view Scanner::word() {
  skip_blanks();
  const size_t start = position_;
  while (position_ < text_.size() && is_word_character(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

std::string Scanner::quoted() {
  const size_t start = position_;
  expect("\"");
  std::string result;
  while (position_ < text_.size() && text_[position_] != '"') {
    const char c = text_[position_++];
    result += c == '\\' ? escaped() : c;
  }
  if (position_ == text_.size()) fail(start, "a quoted string is not terminated");
  ++position_;
  return result;
}

char Scanner::escaped() {
  if (position_ == text_.size()) fail("a quoted string is not terminated");
  const char c = text_[position_++];
  if (c != 'x') return c;
  const std::string_view digits = text_.substr(position_, 2);
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || stop != digits.data() + 2) fail("expected two hexadecimal digits");
  position_ += 2;
  return static_cast<char>(value);
}

std::string Scanner::word_or_quoted() {
  if (next_is("\"")) return quoted();
  std::string name(word());
  if (name.empty()) fail("expected a name");
  return name;
}

std::string_view Scanner::raw_until(std::string_view stops) {
  skip_blanks();
  const size_t start = position_;
  int depth = 0;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '"') {
      quoted();
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth < 0) break;
    ++position_;
  }
  return trimmed(text_.substr(start, position_ - start));
}

std::string Scanner::place(size_t position) const {
  const std::string_view before = text_.substr(0, position);
  const size_t last_break = before.rfind('\n');
  const size_t column = last_break == std::string_view::npos ? position : position - last_break - 1;
  return fmt::format("{}:{}", std::ranges::count(before, '\n') + 1, column + 1);
}

void Scanner::fail(size_t position, std::string_view cause) const {
  throw UserError("INGOT-U110", fmt::format("{}: {}", place(position), cause));
}

void Scanner::rethrow_located(size_t position, const UserError& error) const {
  ErrorDetails details = error.details();
  details.message = fmt::format("{}: {}", place(position), details.message);
  throw UserError(std::move(details));
}

}  // namespace ingot::core
