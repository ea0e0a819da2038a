// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/peer_next.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/index_text.h"
#include "backends/cuda/compile/neighbours.h"
#include "backends/cuda/compile/type_text.h"
#include "backends/cuda/kernel_abi.h"
#include "loops/compose.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

using loops::ExprNode;
using loops::Loop;

// The number of a point of the loops, of which the last varies fastest.
Dim number_of_point(const std::vector<Loop>& loops) {
  Dim number = 0;
  for (const Loop& loop : loops) number = number * loop.extent + Dim::symbol(loop.variable);
  return number;
}

Dim offset_of(const TensorType& type, const std::vector<Dim>& index) {
  return storage_offset(type.layout, type.shape, index);
}

// Whether each point reads the element of the result that has its number, and there are no others.
bool maps_elements(const loops::Kernel& kernel, std::span<const int> reduced) {
  if (!loops::is_elementwise(kernel) || !kernel.stages[0].bindings.empty()) return false;
  const Dim number = number_of_point(kernel.parallel), points = loops::parallel_extent(kernel);
  bool fits = true;
  loops::visit(kernel.stages[0].value, [&](const loops::Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad || std::ranges::find(reduced, node->buffer) == reduced.end())
      return;
    const TensorType& type = kernel.buffers[static_cast<size_t>(node->buffer)].type;
    fits = fits && product(type.shape) == points && offset_of(type, node->index) == number;
  });
  return fits;
}

class NextWriter {
 public:
  NextWriter(const loops::Kernel& kernel, std::span<const int> reduced, DType dtype)
      : kernel_(kernel), reduced_(reduced), each_(static_cast<int>(kPeerLine * 8 / bit_width(dtype))) {
    scope_.ranges = kernel_.symbols;
  }

  PeerNext write() {
    write_arguments();
    const auto row = kernel_.parallel.empty() ? std::nullopt : kernel_.parallel.back().extent.constant();
    row && *row % each_ == 0 ? write_line() : write_elements();
    return std::move(next_);
  }

 private:
  const loops::Stage& stage() const { return kernel_.stages[0]; }
  const loops::Buffer& stored() const { return kernel_.buffers[static_cast<size_t>(stage().store->buffer)]; }
  Dim place() const { return offset_of(stored().type, stage().store->index); }
  bool is_reduced(int buffer) const { return std::ranges::find(reduced_, buffer) != reduced_.end(); }

  void write_arguments() {
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const loops::Buffer& buffer = kernel_.buffers[i];
      next_.arguments += fmt::format(", {}{}* b{}", buffer.access == loops::Access::kRead ? "const " : "",
                                     storage_name(buffer.type.dtype), i);
    }
    const std::vector<std::string> symbols = loops::free_symbols(kernel_);
    for (size_t i = 0; i < symbols.size(); ++i) {
      const auto known = kernel_.symbols.find(symbols[i]);
      next_.arguments += fmt::format(", i64 a{}", i);
      scope_.add(symbols[i], fmt::format("a{}", i),
                 known == kernel_.symbols.end() ? DimRange{INT64_MIN, INT64_MAX} : known->second.range);
    }
    next_.begin = "\ntypedef i64 idx;";
  }

  // Variables of the loops at a point; `per_last`: points of the last loop that count as one.
  void decode(int per_last, std::string& text, IndexScope& scope) const {
    std::string rest = "point";
    for (size_t k = kernel_.parallel.size(); k-- > 0;) {
      const Loop& loop = kernel_.parallel[k];
      const bool is_last = k + 1 == kernel_.parallel.size();
      const Dim extent = is_last && per_last > 1 ? Dim(*loop.extent.constant() / per_last) : loop.extent;
      const std::string name = fmt::format("at{}", k), left = fmt::format("rest{}", k);
      if (k == 0) {
        text += fmt::format("const u32 {} = {};\n", name, rest);
      } else {
        text += fmt::format("const u32 {0} = {1} % (u32){2}, {3} = {1} / (u32){2};\n", name, rest,
                            scope.text(extent), left);
        rest = left;
      }
      scope.add(loop, is_last && per_last > 1 ? fmt::format("((idx){} * {})", name, per_last)
                                              : fmt::format("(idx){}", name));
    }
  }

  // Lines are parts of rows: what else is read side by side is loaded before the line has come.
  void write_line() {
    IndexScope scope = scope_;
    const Loop& loop = kernel_.parallel.back();
    next_.loads = "const u32 point = (u32)line;\n";
    decode(each_, next_.loads, scope);
    ExpressionWriter writer(kernel_, no_locals_, next_.line);
    int vectors = 0;
    for (const NeighbourLoad& load : neighbour_loads(kernel_, stage(), loop, scope)) {
      if (is_reduced(load.buffer)) continue;
      const DType dtype = kernel_.buffers[static_cast<size_t>(load.buffer)].type.dtype;
      const std::string name = fmt::format("w{}", vectors++);
      next_.loads += fmt::format("{}<{}> {} = {{}};\nload_row({}, b{} + {});\n", vector_name(dtype), each_,
                                 name, name, load.buffer, scope.text(load.offset));
      for (const ExprNode* node : load.nodes)
        writer.replace_node(node, fmt::format("number_of<{}>({}, e)", dtype == DType::kBF16, name));
    }
    const bool is_vector = are_in_vectors(stored(), stage().store->index, loop.variable);
    const Dim first = place();
    const std::string to = scope.text(first);
    if (is_vector) next_.line += fmt::format("{} values[kEach];\n", type_name(stage().value->dtype));
    next_.line += "#pragma unroll\nfor (int e = 0; e < kEach; ++e) {\n";
    IndexScope inner = scope;
    inner.add(loop, fmt::format("({} + e)", scope.text(Dim::symbol(loop.variable))));
    write_value(writer, inner, is_vector ? "values[e]" : "");
    next_.line += "}\n";
    if (is_vector)
      next_.line += fmt::format("store_row<{}>(b{} + {}, values);\n", stored().type.dtype == DType::kBF16,
                                stage().store->buffer, to);
  }

  // Rows end within lines.
  void write_elements() {
    next_.line = "#pragma unroll\nfor (int e = 0; e < kEach; ++e) {\n";
    next_.line += "const u32 point = (u32)(line * kEach + e);\nif (point >= elements) break;\n";
    IndexScope scope = scope_;
    decode(1, next_.line, scope);
    ExpressionWriter writer(kernel_, no_locals_, next_.line);
    write_value(writer, scope, "");
    next_.line += "}\n";
  }

  // The value of element e, into `variable`, or stored.
  void write_value(ExpressionWriter& writer, const IndexScope& scope, const std::string& variable) {
    next_.line += "const f32 sum = load(&result.each[e]);\n";
    for (const int buffer : reduced_) writer.replace_buffer(buffer, "sum");
    writer.begin_block();
    const std::string value = writer.value(stage().value, scope, {});
    next_.line += variable.empty() ? store_text(stored(), fmt::format("b{}", stage().store->buffer),
                                                scope.text(place()), value)
                                   : fmt::format("{} = {};\n", variable, value);
    writer.end_block();
  }

  const loops::Kernel& kernel_;
  const std::span<const int> reduced_;
  const int each_;  // elements of a line
  const std::vector<LocalAccess> no_locals_;
  IndexScope scope_;
  PeerNext next_;
};

}  // namespace

std::optional<PeerNext> write_peer_next(const loops::Kernel& next, std::span<const int> reduced,
                                        DType dtype) {
  if (!maps_elements(next, reduced)) return std::nullopt;
  return NextWriter(next, reduced, dtype).write();
}

}  // namespace ingot::core::cuda
