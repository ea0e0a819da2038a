// SPDX-License-Identifier: Apache-2.0
// Dims as flat postfix code: what engine files store and the runtime evaluates.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "types/dim.h"

namespace ingot::core {

// Numbers are stored in engine files: never renumber, only append.
enum class PostfixOp : uint8_t {
  kConstant = 0,  // pushes `value`
  kSymbol = 1,    // pushes symbol number `value`
  kAdd = 2,       // these pop two values and push one
  kMultiply = 3,
  kFloorDivide = 4,
  kModulo = 5,
  kMaximum = 6,
  kMinimum = 7,
};

struct PostfixItem {
  PostfixOp op;
  int64_t value = 0;
};

constexpr size_t kMaxPostfixDepth = 64;    // values on the stack
constexpr size_t kMaxPostfixItems = 1024;  // of one dim

// Equal dims share one slot. Symbols are numbered in the order of first use.
class DimTable {
 public:
  uint32_t add(const Dim& dim);  // the slot of its value; UserError INGOT-U206 if it is too deep or long
  uint32_t add_symbol(const std::string& name);

  size_t size() const { return starts_.size() - 1; }
  const std::vector<std::string>& symbols() const { return symbols_; }
  std::span<const PostfixItem> code(uint32_t slot) const;

  // Value of one slot, from one value per symbol. UserError INGOT-U101/U102 on overflow and division by zero.
  int64_t evaluate(uint32_t slot, std::span<const int64_t> symbols) const;

 private:
  void append(const Dim& dim, size_t depth);

  std::unordered_map<Dim, uint32_t> slots_;
  std::map<std::string, uint32_t, std::less<>> symbol_slots_;
  std::vector<std::string> symbols_;
  std::vector<PostfixItem> items_;
  std::vector<size_t> starts_ = {0};
};

// The inverse of DimTable::code, for untrusted code: UserError INGOT-U205 if it is malformed.
Dim read_postfix(std::span<const PostfixItem> code, std::span<const std::string> symbols);

}  // namespace ingot::core
