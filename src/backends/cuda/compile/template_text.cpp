// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/template_text.h"

#include <algorithm>
#include <set>

#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kBeyond = 1 << 16;  // elements: tiles reach beyond the edge

DimRange below(const Dim& extent, const SymbolTable& ranges) {
  const int64_t most = range_of(extent, ranges).max;
  return {0, most == INT64_MAX ? most : std::max<int64_t>(most - 1, 0)};
}

}  // namespace

std::optional<size_t> innermost(const TensorType& type) {
  if (type.rank() == 0 || !type.layout.is_permutation()) return std::nullopt;
  return type.layout.is_row_major() ? type.rank() - 1 : static_cast<size_t>(type.layout.axes.back().dim);
}

std::vector<Dim> broadcast_index(std::span<const Dim> extents, std::span<const Dim> index) {
  std::vector<Dim> own;
  for (size_t i = 0; i < extents.size(); ++i)
    own.push_back(extents[i] == Dim(1) ? Dim(0) : index[index.size() - extents.size() + i]);
  return own;
}

TemplateText::TemplateText(const Node& node, std::span<const loops::Kernel* const> others,
                           const SymbolTable& table)
    : table_(table) {
  std::set<std::string> names;
  std::vector<const TensorType*> types;
  for (const auto* values : {&node.operands, &node.results}) {
    for (const Value* value : *values) {
      if (value != nullptr) types.push_back(&value->type);
    }
  }
  for (const TensorType* type : types) {
    for (const Dim& dim : type->shape) {
      for (const std::string& name : dim.symbols()) names.insert(name);
    }
  }
  for (const loops::Kernel* kernel : others) {
    for (const std::string& name : loops::free_symbols(*kernel)) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto known = table.find(name);
    scope.add(name, fmt::format("s{}", symbols.size()),
              known == table.end() ? DimRange{INT64_MIN, INT64_MAX} : known->second.range);
    symbols.push_back(name);
  }
  for (const TensorType* type : types)
    wide = wide || needs_64_bits(product(type->shape) + Dim(kBeyond), scope.ranges);
  for (const loops::Kernel* kernel : others) wide = wide || needs_64_bits(*kernel, scope.ranges);
}

void TemplateText::open_function(std::string_view signature) {
  line("DEVICE {} {{\n", signature);
  for (size_t i = 0; i < symbols.size(); ++i) line("const idx s{} = x.s{};\n", i, i);
}

std::string TemplateText::symbol_fields() const {
  std::string fields;
  for (size_t i = 0; i < symbols.size(); ++i) fields += fmt::format(", s{}", i);
  return fields;
}

void TemplateText::declare_symbols() {
  for (size_t i = 0; i < symbols.size(); ++i) line("const idx s{} = (idx)a{};\n", i, i);
}

std::vector<Dim> TemplateText::decode(std::span<const Dim> extents, std::string number,
                                      std::string_view prefix, IndexScope& into) {
  std::vector<Dim> index(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    const std::string name = fmt::format("{}{}", prefix, i), extent = into.text(extents[i]);
    line("const idx {} = {};\n", name, i == 0 ? number : fmt::format("{} % {}", number, extent));
    if (i > 0) {
      line("const idx {}_rest = {} / {};\n", name, number, extent);
      number = name + "_rest";
    }
    index[i] = named(into, name, extents[i]);
  }
  return index;
}

Dim TemplateText::named(IndexScope& into, const std::string& name, const Dim& extent) {
  into.add("$" + name, name, below(extent, into.ranges));
  return Dim::symbol("$" + name);
}

int64_t TemplateText::typical(const Dim& dim) const {
  constexpr int64_t kTypical = 128;
  SymbolValues sizes;
  for (const std::string& name : dim.symbols()) {
    const auto known = table_.find(name);
    const SymbolInfo info = known == table_.end() ? SymbolInfo{} : known->second;
    sizes[name] =
        info.typical.value_or(std::clamp(kTypical, std::max<int64_t>(info.range.min, 1), info.range.max));
  }
  return std::max<int64_t>(evaluate(dim, sizes), 1);
}

}  // namespace ingot::core::cuda
