// SPDX-License-Identifier: Apache-2.0
// Expressions of Loop IR as CUDA C++ statements.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/compile/index_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// How a stage's results are read: a row in shared memory or scratch, or a scalar in a register.
struct LocalAccess {
  std::string name;
  std::vector<Dim> extents;  // of a row; empty for a scalar
};

// Writes the statements that compute one expression at one point. Each node becomes a variable once per block
// of statements; `select` evaluates a load only in the arm that is taken.
class ExpressionWriter {
 public:
  ExpressionWriter(const loops::Kernel& kernel, const std::vector<LocalAccess>& locals, std::string& text);

  // Every load of `buffer` is the variable `name`.
  void replace_buffer(int buffer, std::string name) { replaced_[buffer] = std::move(name); }

  // The variable `name` already holds the value of `node`.
  void replace_node(const loops::ExprNode* node, std::string name) { blocks_[0][node] = std::move(name); }

  // The variable (or literal) that holds `expr` from here on. `scope` names the symbols of its indices;
  // `guards` are conditions under which loads that use a symbol may be made.
  std::string value(const loops::Expr& expr, const IndexScope& scope,
                    const std::map<std::string, std::string>& guards);

  // Forgets the variables of the innermost block, which ends.
  void begin_block() { blocks_.emplace_back(); }
  void end_block() { blocks_.pop_back(); }

 private:
  using Block = std::map<const loops::ExprNode*, std::string>;

  std::string emit(const loops::Expr& expr);
  std::string define(const loops::ExprNode& node, const std::string& text);
  std::string load_text(const loops::ExprNode& node);
  std::string local_text(const loops::ExprNode& node);
  std::string binary_text(const loops::ExprNode& node);
  std::string select(const loops::ExprNode& node);
  const std::string* find(const loops::ExprNode* node) const;
  bool needs_guard(const loops::Expr& expr, std::set<const loops::ExprNode*>& seen) const;

  const loops::Kernel& kernel_;
  const std::vector<LocalAccess>& locals_;
  std::string& text_;
  const IndexScope* scope_ = nullptr;
  const std::map<std::string, std::string>* guards_ = nullptr;
  std::vector<Block> blocks_ = {{}};
  std::map<int, std::string> replaced_;
  int next_ = 0;
};

// Whether a load's indices are below `shape` for all values of the scope's symbols, whether or not a guard
// lets them through.
bool is_in_bounds(const loops::ExprNode& load, const Shape& shape, const IndexScope& scope);

// The statement that stores `value` into element `offset` of a buffer's storage.
std::string store_text(const loops::Buffer& buffer, std::string_view name, const std::string& offset,
                       const std::string& value);

}  // namespace ingot::core::cuda
