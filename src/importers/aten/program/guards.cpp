// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/guards.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "importers/aten/program/bound_symbols.h"
#include "importers/aten/program/guard_parser.h"
#include "support/error.h"
#include "types/linear_dim.h"

namespace ingot::core::aten {
namespace {

// Sizes, and products of trailing sizes, of all tensors: torch compares these with 0 and 1 to determine the
// memory layout.
class TensorSizes {
 public:
  explicit TensorSizes(const Graph& graph) {
    for (const Value& value : graph.values) {
      if (value.kind == ValueKind::kTensor) add(value.tensor.shape);
    }
  }
  bool has(const Dim& dim) const { return sizes_.contains(dim); }

 private:
  void add(const std::vector<Dim>& shape) {
    Dim product = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      sizes_.insert(shape[i]);
      try {
        product = product * shape[i];
      } catch (const Error&) {  // too many terms for a guard
        return;
      }
      sizes_.insert(product);
    }
  }
  std::unordered_set<Dim> sizes_;
};

// Quantities compared with 0 or 1, or bounded below by these: a != 1, 2 <= a.
std::optional<Dim> specialized_size(const Predicate& guard) {
  const auto below = [](const Dim& dim, int64_t limit) { return dim.constant() && *dim.constant() <= limit; };
  switch (guard.kind) {
    case Predicate::Kind::kNotEqual:
      if (below(guard.left, 1)) return guard.right;
      return below(guard.right, 1) ? std::optional(guard.left) : std::nullopt;
    case Predicate::Kind::kLess:
      return below(guard.left, 1) ? std::optional(guard.right) : std::nullopt;
    case Predicate::Kind::kAtMost:
      return below(guard.left, 2) ? std::optional(guard.right) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// torch traces with sizes of 2 or more, whatever range the user specifies.
SymbolTable traced_ranges(const SymbolTable& symbols) {
  SymbolTable traced = symbols;
  for (auto& [name, info] : traced)
    if (info.range.min >= 0) info.range.min = std::min(std::max<int64_t>(info.range.min, 2), info.range.max);
  return traced;
}

struct Parsed {
  size_t guard;
  Predicate condition;
};

// A guard's text without its comment, and the content of the comment.
struct GuardText {
  std::string_view condition;
  std::optional<GuardOrigin> origin;
  std::string_view source;  // "model.py:7 in forward"
};
GuardText split(std::string_view text) {
  const size_t comment = text.find("  # ");
  if (comment == std::string_view::npos) return {text, std::nullopt, {}};
  GuardText result{text.substr(0, comment), GuardOrigin::kTorch, {}};
  const std::string_view who = text.substr(comment + 4);
  const size_t blank = std::min(who.find(' '), who.size());
  if (who.substr(0, blank) == "user") result.origin = GuardOrigin::kUser;
  if (who.substr(0, blank) == "layout") result.origin = GuardOrigin::kLayout;
  result.source = who.substr(std::min(who.size(), blank + 1));
  return result;
}

struct Asking {
  Predicate condition;
  GuardText text;
};

class Reader {
 public:
  explicit Reader(const Program& program)
      : program_(program),
        bound_(bound_symbols(program.graph)),
        sizes_(program.graph),
        traced_(traced_ranges(program.graph.symbols)) {}

  std::vector<GuardReading> read() {
    for (size_t i = 0; i < program_.guards.size(); ++i) {
      const GuardText text = split(program_.guards[i]);
      if (text.origin) {
        read_origin(text);
      } else {
        read_one(i);
      }
    }
    for (Parsed& parsed : parsed_) {
      if (!is_proven(parsed.condition, traced_)) add(parsed);
    }
    std::ranges::sort(readings_, {}, &GuardReading::guard);
    return std::move(readings_);
  }

 private:
  void read_one(size_t index) {
    const std::string& text = program_.guards[index];
    try {
      Predicate condition = parse_guard(text, program_.graph);
      for (const std::string& symbol : symbols_of(condition)) {
        if (!bound_.contains(symbol))
          throw UnsupportedError("INGOT-N524",
                                 fmt::format("the program was traced for {}, and {} is the size of "
                                             "no input",
                                             text, symbol));
      }
      parsed_.push_back({index, std::move(condition)});
    } catch (const UnsupportedError& error) {
      readings_.push_back({index, {}, error.details().message});
    }
  }

  void read_origin(const GuardText& text) {
    try {
      asking_.push_back({parse_guard(text.condition, program_.graph), text});
    } catch (const UnsupportedError&) {
      return;  // the guard itself is parsed, and rejected, without its origin
    }
  }

  void add(Parsed& parsed) {
    const Asking* user = nullptr;
    size_t count = 0, about_layout = 0;
    for (const Asking& asking : asking_) {
      if (asking.condition != parsed.condition) continue;
      ++count;
      if (asking.text.origin == GuardOrigin::kUser) user = &asking;
      if (asking.text.origin == GuardOrigin::kLayout) ++about_layout;
    }
    const auto size = specialized_size(parsed.condition);
    const bool specializes = size && (count > 0 || sizes_.has(*size));
    if (user == nullptr && ((count > 0 && about_layout == count) || specializes)) return;
    SizeCheck check{.kind = CheckKind::kGuard,
                    .condition = std::move(parsed.condition),
                    .message = {},
                    .node = {},
                    .source = {}};
    if (user != nullptr) check.source = user->text.source;
    const auto same = [&](const GuardReading& other) {
      return other.reason.empty() && other.check.condition == check.condition;
    };
    if (std::ranges::none_of(readings_, same)) readings_.push_back({parsed.guard, std::move(check), {}});
  }

  const Program& program_;
  BoundSymbols bound_;
  TensorSizes sizes_;
  SymbolTable traced_;
  std::vector<Parsed> parsed_;
  std::vector<Asking> asking_;
  std::vector<GuardReading> readings_;
};

}  // namespace

std::vector<GuardReading> read_guards(const Program& program) { return Reader(program).read(); }

SpelledSymbols spelled_symbols(const Graph& graph) {
  SpelledSymbols names, others;  // others: symbols that no dim is by itself
  for (const Input& input : graph.inputs) {
    const TensorMeta& meta = graph.values[input.value].tensor;
    if (input.kind != InputKind::kUser) continue;
    const std::optional<Dim>& integer = graph.values[input.value].integer;
    if (integer && integer->is_symbol()) names.emplace(integer->symbol_name(), input.name);
    for (size_t i = 0; i < meta.shape.size(); ++i) {
      if (const auto linear = linear_dim(meta.shape[i]))
        (meta.shape[i].is_symbol() ? names : others)
            .emplace(linear->symbol, linear->spelled(fmt::format("{}.shape[{}]", input.name, i)));
    }
  }
  names.merge(others);
  return names;
}

std::vector<SizeCheck> guard_checks(const Program& program) {
  std::vector<SizeCheck> checks;
  for (GuardReading& reading : read_guards(program)) {
    if (!reading.reason.empty())
      throw UnsupportedError("INGOT-N524", reading.reason,
                             "ingot.compile runs such a program in torch, which checks its guards");
    checks.push_back(std::move(reading.check));
  }
  return checks;
}

}  // namespace ingot::core::aten
