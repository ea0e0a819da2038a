// SPDX-License-Identifier: Apache-2.0
// The content of ingot_builder: the program so far, and its nested graphs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "ingot/build.h"

struct ingot_builder {
  ingot::core::aten::Program program;
  std::vector<std::shared_ptr<ingot::core::aten::Graph>> open;      // being filled, innermost last
  std::vector<std::shared_ptr<ingot::core::aten::Graph>> finished;  // by id

  ingot::core::aten::Graph& graph() { return open.empty() ? program.graph : *open.back(); }
};

namespace ingot::core::api {

// For all misuse of a builder.
[[noreturn]] void refuse_call(std::string message);  // UserError INGOT-U017

// Checks the id of a value of the graph. UserError INGOT-U017.
aten::ValueId to_value_id(const aten::Graph& graph, int64_t id);
[[noreturn]] void refuse_enumerator(int32_t value, std::string_view type);  // UserError INGOT-U016

// Converts an enumerator of the C API to `Enum`, which has the same values and ends with `last`.
template <typename Enum>
Enum to_enum(int32_t value, Enum last, std::string_view type) {
  if (value < 0 || value > static_cast<int32_t>(last)) refuse_enumerator(value, type);
  return static_cast<Enum>(value);
}

inline std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : text; }

// Entries of the C API in prefix order, as arguments.
class ArgumentReader {
 public:
  ArgumentReader(const ingot_builder& builder, const aten::Graph& graph, const ingot_argument* entries,
                 size_t count);
  bool done() const { return next_ == count_; }
  std::string_view name() const;  // of the next argument, "" if positional
  aten::Argument read() { return read(0); }

 private:
  aten::Argument read(int depth);
  aten::Argument read_list(int32_t children, int depth);
  aten::Argument read_complex(int depth);
  aten::Argument read_graph(int64_t id) const;

  const ingot_builder& builder_;
  const aten::Graph& graph_;
  const ingot_argument* entries_;
  size_t count_, next_ = 0;
};

}  // namespace ingot::core::api
