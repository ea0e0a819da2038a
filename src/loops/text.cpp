// SPDX-License-Identifier: Apache-2.0
// The text form of kernels. It is part of cache keys, so it must distinguish everything that affects the
// result: the dtype of each constant, sharing of subexpressions, and the ranges of symbols.
#include <cmath>
#include <set>
#include <unordered_map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "loops/functions.h"
#include "loops/kernel.h"
#include "loops/operator_names.h"
#include "loops/rarely.h"
#include "loops/rewrite.h"

namespace ingot::core::loops {
namespace {

std::string join(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ", ") + dim.to_string();
  return text;
}

std::string join(const std::vector<Loop>& loops) {
  std::string text;
  for (const Loop& loop : loops)
    text += fmt::format("{}{} < {}", text.empty() ? "" : ", ", loop.variable, loop.extent.to_string());
  return text;
}

std::string constant_text(const ExprNode& node) {
  if (node.dtype == DType::kBool) return node.integer != 0 ? "true" : "false";
  if (!is_floating(node.dtype)) {
    return node.dtype == DType::kI64 ? fmt::format("{}", node.integer)
                                     : fmt::format("{}:{}", node.integer, core::name(node.dtype));
  }
  std::string text = node.dtype == DType::kF32 ? fmt::format("{}", static_cast<float>(node.number))
                                               : fmt::format("{}", node.number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return node.dtype == DType::kF32 ? text : text + ":f64";
}

// What the text calls buffers, and stages that do not store. Each has a name of its own: composed kernels
// have several operands that were called alike in their own operators, and a text must not leave open which
// of them is loaded.
struct Names {
  explicit Names(const Kernel& kernel) {
    for (const Buffer& buffer : kernel.buffers) buffers.push_back(distinct(buffer.name));
    for (const Stage& stage : kernel.stages) stages.push_back(stage.store ? "" : distinct(stage.name));
  }

  std::vector<std::string> buffers, stages;

 private:
  std::string distinct(const std::string& wish) {
    std::string name = wish;
    for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wish, i);
    return name;
  }

  std::set<std::string> taken_;
};

// Prints one stage. Compound nodes that are used more than once come first, as `let`.
class StagePrinter {
 public:
  StagePrinter(const Kernel& kernel, const Names& known, size_t stage, std::string& text)
      : kernel_(kernel), known_(known), stage_(stage), text_(text) {}

  void print() {
    const Stage& stage = kernel_.stages[stage_];
    count_uses(stage);
    for (const Binding& binding : stage.bindings) {
      const std::string value = define(binding.value);
      text_ += fmt::format("  let {} = {} in 0..{}\n", binding.symbol, value,
                           (binding.limit - Dim(1)).to_string());
    }
    const std::string value = define(stage.value);
    text_ += fmt::format("  {} = {}{} : {}\n", target(stage), form(stage), loops(stage), value);
  }

 private:
  void count_uses(const Stage& stage) {
    const auto count = [&](const Expr& node) {
      for (const Expr& operand : node->operands) ++uses_[operand.get()];
    };
    std::unordered_map<const ExprNode*, bool> seen;
    const auto count_once = [&](const Expr& node) {
      if (seen.emplace(node.get(), true).second) count(node);
    };
    for (const Binding& binding : stage.bindings) visit(binding.value, count_once);
    visit(stage.value, count_once);
  }

  // Defines shared nodes before `expression`, and returns its text.
  std::string define(const Expr& expression) {
    visit(expression, [&](const Expr& node) {
      if (node->operands.empty() || uses_[node.get()] < 2 || names_.contains(node.get())) return;
      const std::string value = inner_text(*node);
      const std::string name = fmt::format("%{}", names_.size());
      names_.emplace(node.get(), name);
      text_ += fmt::format("  let {} = {}\n", name, value);
    });
    return text_of(expression);
  }

  std::string target(const Stage& stage) const {
    if (stage.store) {
      return fmt::format("{}[{}]", known_.buffers[static_cast<size_t>(stage.store->buffer)],
                         join(stage.store->index));
    }
    const std::string& name = known_.stages[stage_];
    if (stage.loops.empty()) return name;
    std::string variables;
    for (const Loop& loop : stage.loops) variables += (variables.empty() ? "" : ", ") + loop.variable;
    return fmt::format("row {}[{}]", name, variables);
  }

  static std::string form(const Stage& stage) {
    if (stage.combine == Combine::kNone) return "map";
    return fmt::format("{} {}", stage.scan ? "scan" : "reduce",
                       kCombineNames[static_cast<size_t>(stage.combine)]);
  }

  static std::string loops(const Stage& stage) {
    std::string text;
    if (!stage.loops.empty()) text += " " + join(stage.loops);
    if (!stage.reduce.empty())
      text += fmt::format("{} over {}", stage.loops.empty() ? "" : ",", join(stage.reduce));
    return text;
  }

  std::string text_of(const Expr& expression) const {
    const auto named = names_.find(expression.get());
    return named != names_.end() ? named->second : inner_text(*expression);
  }

  std::string operand(const ExprNode& node, size_t index) const { return text_of(node.operands[index]); }

  std::string inner_text(const ExprNode& node) const {
    switch (node.kind) {
      case ExprNode::Kind::kConstant:
        return constant_text(node);
      case ExprNode::Kind::kIndex:
        return fmt::format("index({})", join(node.index));
      case ExprNode::Kind::kLoad:
        return fmt::format("{}[{}]", known_.buffers[static_cast<size_t>(node.buffer)], join(node.index));
      case ExprNode::Kind::kLocal: {
        const std::string& name = known_.stages[static_cast<size_t>(node.stage)];
        return node.index.empty() ? name : fmt::format("{}[{}]", name, join(node.index));
      }
      case ExprNode::Kind::kUnary:
        return fmt::format("{}({})", kUnaryNames[static_cast<size_t>(node.unary)], operand(node, 0));
      case ExprNode::Kind::kFunction:
        return fmt::format("{}({})", node.function->name, operand(node, 0));
      case ExprNode::Kind::kBinary: {
        const std::string_view name = kBinaryNames[static_cast<size_t>(node.binary)];
        if (is_function_name(name))
          return fmt::format("{}({}, {})", name, operand(node, 0), operand(node, 1));
        return fmt::format("({} {} {})", operand(node, 0), name, operand(node, 1));
      }
      case ExprNode::Kind::kSelect:
        return fmt::format("{}({}, {}, {})", is_rare(node) ? "rarely" : "select", operand(node, 0),
                           operand(node, 1), operand(node, 2));
      case ExprNode::Kind::kConvert:
        return fmt::format("{}({})", core::name(node.dtype), operand(node, 0));
      case ExprNode::Kind::kBitcast:
        return fmt::format("bitcast_{}({})", core::name(node.dtype), operand(node, 0));
      case ExprNode::Kind::kFma:
        return fmt::format("fma({}, {}, {})", operand(node, 0), operand(node, 1), operand(node, 2));
    }
    return "";
  }

  const Kernel& kernel_;
  const Names& known_;
  const size_t stage_;
  std::string& text_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, std::string> names_;
};

// Reads are in parentheses and writes after the arrow, as far as the order of the buffers allows.
std::string signature(const Kernel& kernel, const Names& known) {
  std::string text = fmt::format("kernel {}(", kernel.name);
  bool after_arrow = false;
  std::string separator;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer& buffer = kernel.buffers[i];
    if (!after_arrow && buffer.access == Access::kWrite) {
      text += ") -> ";
      separator.clear();
      after_arrow = true;
    }
    const std::string_view mark = buffer.access == Access::kReadWrite             ? "inout "
                                  : after_arrow && buffer.access == Access::kRead ? "in "
                                                                                  : "";
    text += fmt::format("{}{}{}: {}", separator, mark, known.buffers[i], to_string(buffer.type));
    separator = ", ";
  }
  return text + (after_arrow ? "" : ")") + " {\n";
}

std::string range_text(const std::string& symbol, const SymbolTable& symbols) {
  const auto found = symbols.find(symbol);
  if (found == symbols.end()) return symbol + " in ..";  // of any sign: not the same as 0..
  if (found->second.range == DimRange{}) return symbol;
  const DimRange& range = found->second.range;
  return fmt::format("{} in {}..{}", symbol, range.min,
                     range.max == INT64_MAX ? "" : fmt::format("{}", range.max));
}

}  // namespace

std::string to_string(const Kernel& kernel) {
  const Names known(kernel);
  std::string text = signature(kernel, known);
  std::string symbols;
  for (const std::string& symbol : free_symbols(kernel)) {
    symbols += (symbols.empty() ? "  where " : ", ") + range_text(symbol, kernel.symbols);
  }
  if (!symbols.empty()) text += symbols + "\n";
  if (!kernel.parallel.empty()) text += fmt::format("  parallel {}\n", join(kernel.parallel));
  for (size_t i = 0; i < kernel.stages.size(); ++i) StagePrinter(kernel, known, i, text).print();
  return text + "}\n";
}

}  // namespace ingot::core::loops
