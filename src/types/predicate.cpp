// SPDX-License-Identifier: Apache-2.0
#include "types/predicate.h"

#include <algorithm>
#include <set>

namespace ingot::core {
namespace {

using Kind = Predicate::Kind;

void collect_symbols(const Predicate& predicate, std::set<std::string>& names) {
  for (const Dim& side : {predicate.left, predicate.right}) {
    for (std::string& name : side.symbols()) names.insert(std::move(name));
  }
  for (const Predicate& part : predicate.parts) collect_symbols(part, names);
}

Predicate join(Kind kind, Predicate a, Predicate b) {
  Predicate joined{.kind = kind};
  joined.parts.push_back(std::move(a));
  joined.parts.push_back(std::move(b));
  return joined;
}

}  // namespace

bool Predicate::operator==(const Predicate& other) const {
  if (kind != other.kind) return false;
  if (left == other.left && right == other.right && parts == other.parts) return true;
  const bool symmetric = kind == Kind::kEqual || kind == Kind::kNotEqual;
  return symmetric && left == other.right && right == other.left;
}

Predicate compare(Kind kind, Dim left, Dim right) {
  return {.kind = kind, .left = std::move(left), .right = std::move(right)};
}
Predicate both(Predicate a, Predicate b) { return join(Kind::kAnd, std::move(a), std::move(b)); }
Predicate either(Predicate a, Predicate b) { return join(Kind::kOr, std::move(a), std::move(b)); }

Predicate negation(const Predicate& predicate) {
  switch (predicate.kind) {
    case Kind::kEqual:
      return compare(Kind::kNotEqual, predicate.left, predicate.right);
    case Kind::kNotEqual:
      return compare(Kind::kEqual, predicate.left, predicate.right);
    case Kind::kLess:
      return compare(Kind::kAtMost, predicate.right, predicate.left);
    case Kind::kAtMost:
      return compare(Kind::kLess, predicate.right, predicate.left);
    case Kind::kAnd:
      return either(negation(predicate.parts[0]), negation(predicate.parts[1]));
    case Kind::kOr:
      return both(negation(predicate.parts[0]), negation(predicate.parts[1]));
  }
  return predicate;
}

bool is_true(Kind comparison, int64_t left, int64_t right) {
  switch (comparison) {
    case Kind::kEqual:
      return left == right;
    case Kind::kNotEqual:
      return left != right;
    case Kind::kLess:
      return left < right;
    default:
      return left <= right;
  }
}

bool evaluate(const Predicate& predicate, const SymbolValues& values) {
  if (predicate.kind == Kind::kAnd)
    return evaluate(predicate.parts[0], values) && evaluate(predicate.parts[1], values);
  if (predicate.kind == Kind::kOr)
    return evaluate(predicate.parts[0], values) || evaluate(predicate.parts[1], values);
  return is_true(predicate.kind, evaluate(predicate.left, values), evaluate(predicate.right, values));
}

std::vector<std::string> symbols_of(const Predicate& predicate) {
  std::set<std::string> names;
  collect_symbols(predicate, names);
  return {names.begin(), names.end()};
}

}  // namespace ingot::core
