// SPDX-License-Identifier: Apache-2.0
// Reads text from left to right, for parsers. Handles whitespace, "--" comments, words and quotes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "support/error.h"

namespace ingot::core {

std::string quote(std::string_view text);  // "a \"b\"\n", control characters as \xNN
bool is_word(std::string_view text);       // not empty; only letters, digits, '_' and '.'

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  size_t next_position();  // after whitespace
  void move_to(size_t position) { position_ = position; }
  bool at_end();  // only whitespace and comments are left

  bool next_is(std::string_view expected);  // after whitespace; a word must end where `expected` ends
  bool accept(std::string_view expected);   // skips it if it is next
  void expect(std::string_view expected);
  std::string_view word();  // "" if none is next
  std::string quoted();     // a quoted string, without its escapes
  std::string word_or_quoted();
  // Everything up to the first of `stops` outside quotes and brackets, trimmed.
  std::string_view raw_until(std::string_view stops);

  // Throws UserError INGOT-U110 "line:column: cause".
  [[noreturn]] void fail(size_t position, std::string_view cause) const;
  [[noreturn]] void fail(std::string_view cause) const { fail(position_, cause); }

  // Runs `function`; adds the position to the UserErrors that it throws.
  template <typename Function>
  auto located(size_t position, Function&& function) const {
    try {
      return function();
    } catch (const UserError& error) {
      rethrow_located(position, error);
    }
  }

 private:
  void skip_blanks();
  char escaped();
  std::string place(size_t position) const;
  [[noreturn]] void rethrow_located(size_t position, const UserError& error) const;

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace ingot::core
