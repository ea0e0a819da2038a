// SPDX-License-Identifier: Apache-2.0
#include "runtime/conditions.h"

#include <algorithm>

namespace ingot::core {

using Kind = Predicate::Kind;

Conditions::Conditions(const EngineData& data, std::span<const std::string> symbols,
                       const std::vector<bool>& late)
    : data_(&data) {
  for (const std::string& symbol : symbols) dims_.add_symbol(symbol);
  for (uint32_t i = 0; i < data.checks.size(); ++i) {
    Root root{.item = add(data.checks[i].condition), .check = i, .symbols = {}};
    for (const std::string& name : symbols_of(data.checks[i].condition)) {
      const auto slot = static_cast<uint32_t>(std::ranges::find(symbols, name) - symbols.begin());
      if (slot < late.size() && late[slot]) root.symbols.push_back(slot);
    }
    (root.symbols.empty() ? early_ : late_).push_back(std::move(root));
  }
}

uint32_t Conditions::add(const Predicate& predicate) {
  Item item{.kind = predicate.kind, .left = 0, .right = 0};
  const bool joins = predicate.kind == Kind::kAnd || predicate.kind == Kind::kOr;
  item.left = joins ? add(predicate.parts[0]) : dims_.add(predicate.left);
  item.right = joins ? add(predicate.parts[1]) : dims_.add(predicate.right);
  items_.push_back(item);
  return static_cast<uint32_t>(items_.size() - 1);
}

bool Conditions::holds(const Item& item, std::span<const int64_t> symbols) const {
  if (item.kind == Kind::kAnd) return holds(items_[item.left], symbols) && holds(items_[item.right], symbols);
  if (item.kind == Kind::kOr) return holds(items_[item.left], symbols) || holds(items_[item.right], symbols);
  return is_true(item.kind, dims_.evaluate(item.left, symbols), dims_.evaluate(item.right, symbols));
}

void Conditions::require(std::span<const int64_t> symbols) const {
  for (const Root& root : early_) {
    if (!holds(items_[root.item], symbols)) [[unlikely]]
      fail(data_->checks[root.check], symbols);
  }
}

void Conditions::require_late(std::span<const int64_t> symbols, const std::vector<bool>& bound,
                              uint32_t is_new) const {
  for (const Root& root : late_) {
    if (std::ranges::find(root.symbols, is_new) == root.symbols.end()) continue;
    if (!std::ranges::all_of(root.symbols, [&](uint32_t symbol) { return bound[symbol]; })) continue;
    if (!holds(items_[root.item], symbols)) [[unlikely]]
      fail(data_->checks[root.check], symbols);
  }
}

void Conditions::fail(const SizeCheck& check, std::span<const int64_t> symbols) const {
  SymbolValues values;
  for (size_t i = 0; i < symbols.size(); ++i) values.emplace(dims_.symbols()[i], symbols[i]);
  fail_check(check, spelled_symbols(data_->main), values);
}

}  // namespace ingot::core
