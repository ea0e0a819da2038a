// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/guard_paths.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ingot::core::aten {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool take(std::string_view& rest, std::string_view token) {
  if (!rest.starts_with(token)) return false;
  rest.remove_prefix(token.size());
  return true;
}

// ['key'] or [3]; "" if none is next.
std::string_view take_key(std::string_view& rest) {
  if (!rest.starts_with('[')) return {};
  const bool quoted = rest.size() > 1 && (rest[1] == '\'' || rest[1] == '"');
  const size_t begin = quoted ? 2 : 1;
  const size_t end = quoted ? rest.find(rest[1], begin) : rest.find(']');
  if (end == std::string_view::npos) return {};
  const std::string_view key = rest.substr(begin, end - begin);
  rest.remove_prefix(std::min(rest.size(), end + (quoted ? 2 : 1)));
  return key;
}

// .name, of a named tuple or a class that is registered with pytree; "" if a call or nothing is next.
std::string_view take_field(std::string_view& rest) {
  if (!rest.starts_with('.')) return {};
  const auto end = std::find_if_not(rest.begin() + 1, rest.end(), is_word);
  const std::string_view field = rest.substr(1, static_cast<size_t>(end - rest.begin()) - 1);
  if (rest.substr(field.size() + 1).starts_with('(')) return {};
  rest.remove_prefix(field.size() + 1);
  return field;
}

// torch joins the keys of a path, keeping only letters and digits.
void append_key(std::string& name, std::string_view key) {
  if (!name.empty()) name += '_';
  for (const char c : key)
    name += is_word(c) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
}

std::string lower(std::string_view text) {
  std::string name;
  append_key(name, text);
  return name;
}

// "x" for torch's "x_1", which avoids a name already taken.
bool is_numbered(std::string_view name, std::string_view stem) {
  if (name.size() <= stem.size() + 1 || !name.starts_with(stem) || name[stem.size()] != '_') return false;
  return std::ranges::all_of(name.substr(stem.size() + 1), is_digit);
}

}  // namespace

GuardPath read_guard_path(std::string_view& rest) {
  const std::string_view begin = rest;
  GuardPath path;
  take(rest, "L");
  while (true) {
    if (take(rest, ".size()") || take(rest, ".shape")) {
      const std::string_view axis = take_key(rest);
      size_t number = 0;
      const auto read = std::from_chars(axis.data(), axis.data() + axis.size(), number);
      if (!axis.empty() && read.ec == std::errc() && read.ptr == axis.data() + axis.size())
        path.axis = number;
      break;
    }
    std::string_view key = take_key(rest);
    if (key.empty()) key = take_field(rest);
    if (key.empty()) break;
    append_key(path.input, key);
  }
  path.text = begin.substr(0, begin.size() - rest.size());
  return path;
}

std::optional<Dim> find_size(const Graph& graph, const GuardPath& path) {
  const Input* found = nullptr;
  for (const Input& input : graph.inputs) {
    if (input.kind != InputKind::kUser) continue;
    const std::string name = lower(input.name);
    if (name == path.input && found == nullptr) {
      found = &input;
    } else if (name == path.input) {
      return std::nullopt;
    }
  }
  if (found == nullptr) return std::nullopt;
  // Joined keys may collide with the name of another input: then one of them has a number.
  const bool may_be_joined = path.input.find('_') != std::string::npos;
  for (const Input& input : graph.inputs) {
    const bool is_double = input.kind == InputKind::kUser && is_numbered(lower(input.name), path.input);
    if (may_be_joined && is_double && &input != found) return std::nullopt;
  }
  const Value& value = graph.values[found->value];
  if (!path.axis) return graph.passes_numbers ? value.integer : std::nullopt;
  if (value.kind != ValueKind::kTensor || *path.axis >= value.tensor.shape.size()) return std::nullopt;
  return value.tensor.shape[*path.axis];
}

}  // namespace ingot::core::aten
