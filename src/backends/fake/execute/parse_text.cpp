// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/parse_text.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>

#include "backends/fake/execute/parse_expression.h"
#include "loops/operator_names.h"
#include "types/parse_type.h"

namespace ingot::core::loops {
namespace {

class KernelParser {
 public:
  explicit KernelParser(std::string_view text) : scanner_(text) {}

  Kernel parse() {
    parse_signature();
    if (scanner_.accept("where")) parse_symbols();
    if (scanner_.accept("parallel")) {
      do {
        kernel_.parallel.push_back(parse_loop());
      } while (scanner_.accept(","));
    }
    while (!scanner_.accept("}")) parse_stage();
    if (!scanner_.at_end()) scanner_.fail("unexpected text after the kernel");
    check();
    return std::move(kernel_);
  }

 private:
  void parse_signature() {
    scanner_.expect("kernel");
    kernel_.name = parse_name(scanner_);
    scanner_.expect("(");
    if (!scanner_.accept(")")) {
      parse_buffers(Access::kRead);
      scanner_.expect(")");
    }
    if (scanner_.accept("->")) parse_buffers(Access::kWrite);
    scanner_.expect("{");
  }

  void parse_buffers(Access unmarked) {
    do {
      Access access = unmarked;
      std::string name = parse_name(scanner_);
      if ((name == "in" || name == "inout") && !scanner_.next_is(":")) {
        access = name == "in" ? Access::kRead : Access::kReadWrite;
        name = parse_name(scanner_);
      }
      add_name(names_.buffers, name, kernel_.buffers.size());
      scanner_.expect(":");
      kernel_.buffers.push_back({std::move(name), parse_buffer_type(scanner_), access});
    } while (scanner_.accept(","));
  }

  void add_name(std::map<std::string, int, std::less<>>& names, const std::string& name, size_t number) {
    if (names_.buffers.contains(name) || names_.stages.contains(name))
      scanner_.fail(fmt::format("the name '{}' is taken", name));
    names.emplace(name, static_cast<int>(number));
  }

  void parse_symbols() {
    do {
      const std::string name = parse_name(scanner_);
      if (!declared_.insert(name).second) scanner_.fail(fmt::format("'{}' is declared twice", name));
      if (!scanner_.accept("in"))
        kernel_.symbols[name] = {};
      else if (const std::string_view range = scanner_.raw_until(",\n"); range != "..")
        kernel_.symbols[name].range = range_of(range);
    } while (scanner_.accept(","));
  }

  DimRange range_of(std::string_view text) const {
    const size_t dots = text.find("..");
    if (dots == std::string_view::npos) scanner_.fail("expected a range such as 1..16");
    DimRange range{.min = number_of(text.substr(0, dots))};
    if (dots + 2 < text.size()) range.max = number_of(text.substr(dots + 2));
    if (range.min > range.max) scanner_.fail("the range is empty");
    return range;
  }

  int64_t number_of(std::string_view text) const {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) scanner_.fail("expected an integer");
    return value;
  }

  Loop parse_loop() {
    std::string variable = parse_name(scanner_);
    scanner_.expect("<");
    return {std::move(variable), parse_dim_until(scanner_, ",:\n")};
  }

  // What is shared or bound comes before the stage's own line.
  void parse_stage() {
    Stage stage;
    names_.shared.clear();
    while (scanner_.accept("let")) parse_let(stage);
    const size_t start = scanner_.next_position();
    parse_target(stage);
    scanner_.expect("=");
    parse_form(stage);
    parse_loops(stage);
    scanner_.expect(":");
    if (!row_.empty() && variables_of(stage) != row_)
      scanner_.fail(start, "the variables of the row are not those of its loops");
    stage.value = parse_expression(scanner_, kernel_, names_);
    if (!stage.store) add_name(names_.stages, stage.name, kernel_.stages.size());
    kernel_.stages.push_back(std::move(stage));
  }

  void parse_let(Stage& stage) {
    if (scanner_.accept("%")) {
      const std::string name = fmt::format("%{}", scanner_.word());
      scanner_.expect("=");
      if (!names_.shared.emplace(name, parse_expression(scanner_, kernel_, names_)).second)
        scanner_.fail(fmt::format("'{}' is defined twice", name));
      return;
    }
    Binding binding;
    binding.symbol = parse_name(scanner_);
    scanner_.expect("=");
    binding.value = parse_expression(scanner_, kernel_, names_);
    scanner_.expect("in");
    const size_t start = scanner_.next_position();
    const std::string_view range = scanner_.raw_until("\n");
    constexpr std::string_view kFrom = "0..";
    if (!range.starts_with(kFrom)) scanner_.fail(start, "expected a range that starts at 0");
    binding.limit =
        scanner_.located(start, [&] { return parse_kernel_dim(range.substr(kFrom.size())) + Dim(1); });
    stage.bindings.push_back(std::move(binding));
  }

  // "y[i, j]" is an element of a buffer, "row e[j]" and "m" are the stage's own.
  void parse_target(Stage& stage) {
    row_.clear();
    bool is_row = false;
    const size_t start = scanner_.next_position();
    std::string name = parse_name(scanner_);
    if (name == "row" && !scanner_.next_is("[") && !scanner_.next_is("=")) {
      is_row = true;
      name = parse_name(scanner_);
    }
    stage.name = name;
    if (!is_row && !scanner_.next_is("[")) return;
    std::vector<Dim> index = parse_index(scanner_);
    if (is_row) {
      row_ = std::move(index);
      if (row_.empty()) scanner_.fail(start, "a row has at least one variable");
      return;
    }
    const auto buffer = names_.buffers.find(name);
    if (buffer == names_.buffers.end()) scanner_.fail(start, fmt::format("there is no buffer '{}'", name));
    stage.store = Store{buffer->second, std::move(index)};
  }

  static std::vector<Dim> variables_of(const Stage& stage) {
    std::vector<Dim> variables;
    for (const Loop& loop : stage.loops) variables.push_back(Dim::symbol(loop.variable));
    return variables;
  }

  void parse_form(Stage& stage) {
    if (scanner_.accept("map")) return;
    stage.scan = scanner_.accept("scan");
    if (!stage.scan) scanner_.expect("reduce");
    const size_t start = scanner_.next_position();
    const auto found = std::ranges::find(kCombineNames, scanner_.word());
    if (found == std::end(kCombineNames) || found->empty())
      scanner_.fail(start, "expected how to combine: add, multiply, max, min, and, or");
    stage.combine = static_cast<Combine>(found - std::begin(kCombineNames));
  }

  void parse_loops(Stage& stage) {
    if (scanner_.next_is(":")) return;
    bool reduces = false;
    do {
      reduces = scanner_.accept("over") || reduces;
      (reduces ? stage.reduce : stage.loops).push_back(parse_loop());
    } while (scanner_.accept(","));
  }

  void check() const {
    const std::vector<std::string> used = free_symbols(kernel_);
    for (const std::string& name : used) {
      if (!declared_.contains(name)) scanner_.fail(fmt::format("the symbol '{}' is not declared", name));
    }
    if (declared_.size() != used.size()) scanner_.fail("a symbol is declared that nothing uses");
    try {
      verify(kernel_);
    } catch (const InternalError& error) {
      scanner_.fail(broken_rule(error));
    }
  }

  Scanner scanner_;
  Kernel kernel_;
  TextNames names_;
  std::set<std::string> declared_;
  std::vector<Dim> row_;  // the variables of the target, if it is a row
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return KernelParser(text).parse(); }

}  // namespace ingot::core::loops
