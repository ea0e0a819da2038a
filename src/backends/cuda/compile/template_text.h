// SPDX-License-Identifier: Apache-2.0
// What templates with hand-written bodies share: the symbols of a node as arguments of a kernel, and its
// indices as code.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/compile/index_text.h"
#include "backends/cuda/compile/tensor_map.h"
#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// The dim whose neighbours lie side by side; nothing in blocked layouts.
std::optional<size_t> innermost(const TensorType& type);

// The index into dims of `extents` that are broadcast to those that `index` counts: aligned at the last, 0 in
// dims of size 1.
std::vector<Dim> broadcast_index(std::span<const Dim> extents, std::span<const Dim> index);

// A kernel made from a template: clusters of blocks of `threads` threads take `items` of work in turn.
struct TemplateKernel {
  int threads = 128, cluster = 1;
  Dim items = 1;
  int64_t shared_bytes = 0;
  std::vector<TensorMap> maps;
  std::vector<std::string> symbols;
  std::string text;  // without the prelude
};

class TemplateText {
 public:
  // `others`: kernels whose symbols become arguments too.
  TemplateText(const Node& node, std::span<const loops::Kernel* const> others, const SymbolTable& symbols);

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  // A function of `x`, a struct with the fields of `symbol_fields`, up to its first statement.
  void open_function(std::string_view signature);
  std::string symbol_fields() const;  // ", s0, s1"
  void declare_symbols();             // of a kernel, from its arguments

  // Variables PREFIX0, PREFIX1 ... for an index over `extents` from one number; the last counts fastest.
  std::vector<Dim> decode(std::span<const Dim> extents, std::string number, std::string_view prefix,
                          IndexScope& into);
  // The variable `name`, which counts to below `extent`, as a symbol of `into`.
  static Dim named(IndexScope& into, const std::string& name, const Dim& extent);
  int64_t typical(const Dim& dim) const;  // at the typical sizes of its symbols, at least 1

  IndexScope scope;                  // the symbols
  std::vector<std::string> symbols;  // in the order of the kernel's arguments
  bool wide = false;                 // indices need 64 bits
  std::string text;

 private:
  const SymbolTable& table_;
};

}  // namespace ingot::core::cuda
