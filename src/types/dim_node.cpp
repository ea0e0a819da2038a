// SPDX-License-Identifier: Apache-2.0
// Storage, order and rebuilding of dims.
#include "types/dim_node.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include <fmt/core.h>

#include "support/error.h"
#include "types/symbol_name.h"
#include "types/with_operands.h"

namespace ingot::core {
namespace {

constexpr size_t combine(size_t seed, size_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
}

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  if (dim.is_symbol()) names.insert(dim.symbol_name());
  for (const Dim& operand : dim.operands()) collect_symbols(operand, names);
}

DimTerm to_term(const Dim& dim) {
  if (dim.is_constant()) return {*dim.constant(), {}};
  if (dim.kind() != Dim::Kind::kMultiply) return {1, {dim}};
  const auto operands = dim.operands();
  const bool scaled = operands[0].is_constant();
  return {scaled ? *operands[0].constant() : 1, {operands.begin() + (scaled ? 1 : 0), operands.end()}};
}

Dim from_term(DimTerm term) {
  if (term.atoms.empty()) return term.coefficient;
  if (term.coefficient == 1 && term.atoms.size() == 1) return term.atoms[0];
  if (term.coefficient != 1) term.atoms.insert(term.atoms.begin(), Dim(term.coefficient));
  return DimFactory::make(Dim::Kind::kMultiply, std::move(term.atoms));
}

}  // namespace

Dim DimFactory::make(Dim::Kind kind, std::vector<Dim> operands, std::string name) {
  size_t hash = combine(static_cast<size_t>(kind), std::hash<std::string>()(name));
  for (const Dim& operand : operands) hash = combine(hash, operand.hash());
  Dim result;
  result.node_ = std::make_shared<const DimNode>(DimNode{kind, std::move(name), std::move(operands), hash});
  return result;
}

Polynomial to_polynomial(const Dim& dim) {
  if (dim == Dim(0)) return {};
  if (dim.kind() != Dim::Kind::kAdd) return {to_term(dim)};
  Polynomial terms;
  terms.reserve(dim.operands().size());
  for (const Dim& operand : dim.operands()) terms.push_back(to_term(operand));
  return terms;
}

Dim to_dim(Polynomial terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return from_term(std::move(terms[0]));
  std::vector<Dim> operands;
  operands.reserve(terms.size());
  for (DimTerm& term : terms) operands.push_back(from_term(std::move(term)));
  return DimFactory::make(Dim::Kind::kAdd, std::move(operands));
}

Dim::Dim(int64_t value) : value_(value) {}

bool is_symbol_name(std::string_view name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  const auto inner = [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0 || c == '.'; };
  return !name.empty() && letter(static_cast<unsigned char>(name[0])) && std::ranges::all_of(name, inner);
}

void require_symbol_name(std::string_view name) {
  if (is_symbol_name(name)) return;
  throw UserError("INGOT-U103", fmt::format("'{}' is not a valid name of a symbolic size", name),
                  "use letters, digits, '_' and '.', not starting with a digit or '.'");
}

Dim Dim::symbol(std::string name) {
  require_symbol_name(name.starts_with('$') ? std::string_view(name).substr(1) : std::string_view(name));
  return DimFactory::make(Kind::kSymbol, {}, std::move(name));
}

bool Dim::is_symbol() const { return kind() == Kind::kSymbol; }

Dim::Kind Dim::kind() const { return node_ ? node_->kind : Kind::kConstant; }

std::span<const Dim> Dim::operands() const {
  return node_ ? std::span<const Dim>(node_->operands) : std::span<const Dim>();
}

const std::string& Dim::symbol_name() const {
  invariant(is_symbol(), "only a symbol has a name");
  return node_->name;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

size_t Dim::hash() const { return node_ ? node_->hash : combine(0, static_cast<size_t>(value_)); }

bool Dim::operator==(const Dim& other) const {
  if (!node_ || !other.node_) return !node_ && !other.node_ && value_ == other.value_;
  if (node_ == other.node_) return true;
  return node_->hash == other.node_->hash && node_->kind == other.node_->kind &&
         node_->name == other.node_->name && node_->operands == other.node_->operands;
}

std::strong_ordering Dim::operator<=>(const Dim& other) const {
  if (!node_ || !other.node_) {
    if (node_) return std::strong_ordering::greater;
    return other.node_ ? std::strong_ordering::less : value_ <=> other.value_;
  }
  if (node_ == other.node_) return std::strong_ordering::equal;
  if (const auto order = node_->kind <=> other.node_->kind; order != 0) return order;
  if (const auto order = node_->name <=> other.node_->name; order != 0) return order;
  return node_->operands <=> other.node_->operands;
}

Dim combine(Dim::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case Dim::Kind::kAdd:
      return a + b;
    case Dim::Kind::kMultiply:
      return a * b;
    case Dim::Kind::kFloorDivide:
      return floor_divide(a, b);
    case Dim::Kind::kModulo:
      return modulo(a, b);
    case Dim::Kind::kMaximum:
      return maximum(a, b);
    case Dim::Kind::kMinimum:
      return minimum(a, b);
    case Dim::Kind::kConstant:
    case Dim::Kind::kSymbol:
      break;  // have no operands
  }
  return a;
}

Dim with_operands(const Dim& dim, std::span<const Dim> operands) {
  if (std::ranges::equal(operands, dim.operands())) return dim;
  return std::accumulate(operands.begin() + 1, operands.end(), operands[0],
                         [&](const Dim& a, const Dim& b) { return combine(dim.kind(), a, b); });
}

Dim substitute(const Dim& dim, const std::map<std::string, Dim>& replacements) {
  if (dim.is_constant()) return dim;
  if (dim.is_symbol()) {
    const auto found = replacements.find(dim.symbol_name());
    return found == replacements.end() ? dim : found->second;
  }
  std::vector<Dim> operands;
  for (const Dim& operand : dim.operands()) operands.push_back(substitute(operand, replacements));
  return with_operands(dim, operands);
}

}  // namespace ingot::core
