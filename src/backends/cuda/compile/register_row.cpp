// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/register_row.h"

#include <algorithm>

#include <fmt/core.h>

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/neighbours.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr int64_t kMostOwn = 32;         // elements of a thread
constexpr int64_t kMostRegisters = 128;  // for values that are read once
constexpr int64_t kShortestRow = 64;
constexpr int kLanes = 32, kMostRowThreads = 256, kWidestVector = 8;
constexpr const char* kRowVariable = "$row";

RegisterRow divided_row(int64_t extent, int group) {
  RegisterRow row{.extent = extent, .group = group, .wide = kWidestVector};
  while (row.wide > 1 && (row.extent % row.wide != 0 || row.extent < int64_t{row.wide} * group))
    row.wide /= 2;
  return row;
}

// The loop over the row, or null for a stage that computes one value from others.
const Loop* row_loop(const Stage& stage) {
  if (stage.loops.size() == 1 && stage.reduce.empty()) return &stage.loops[0];
  return stage.reduce.size() == 1 && stage.loops.empty() ? &stage.reduce[0] : nullptr;
}

bool is_row(const Stage& stage) { return !stage.loops.empty(); }

// The stages with one name for the row's variable.
std::vector<Stage> with_one_variable(const Kernel& kernel) {
  std::vector<Stage> stages = kernel.stages;
  for (Stage& stage : stages) {
    const Loop* loop = row_loop(stage);
    if (loop == nullptr) continue;
    const std::map<std::string, Dim> names = {{loop->variable, Dim::symbol(kRowVariable)}};
    stage.value = loops::substitute(stage.value, names);
    if (!stage.store) continue;
    for (Dim& index : stage.store->index) index = core::substitute(index, names);
  }
  return stages;
}

bool reads_rows_in_place(const Kernel& kernel, const Stage& stage) {
  bool in_place = true;
  const Loop* loop = row_loop(stage);
  loops::visit(stage.value, [&](const Expr& node) {
    if (node->kind != ExprNode::Kind::kLocal || !is_row(kernel.stages[static_cast<size_t>(node->stage)]))
      return;
    in_place = in_place && loop != nullptr && node->index.size() == 1 &&
               node->index[0] == Dim::symbol(loop->variable);
  });
  return in_place;
}

bool is_stage_of_row(const Kernel& kernel, const Stage& stage, int64_t extent) {
  if (stage.scan || !stage.bindings.empty() || !reads_rows_in_place(kernel, stage)) return false;
  if (stage.loops.empty() && stage.reduce.empty()) return true;
  const Loop* loop = row_loop(stage);
  return loop != nullptr && loop->extent == Dim(extent);
}

class RegisterRowWriter {
 public:
  RegisterRowWriter(const Kernel& kernel, const RegisterRow& row, const IndexScope& scope,
                    const std::vector<bool>& are_weights)
      : kernel_(kernel),
        row_(row),
        scope_(scope),
        are_weights_(are_weights),
        stages_(with_one_variable(kernel)) {
    row_scope_ = scope;
    row_scope_.add(kRowVariable, "at", {0, row.extent - 1});
  }

  RegisterRowText write() {
    find_loads();
    RegisterRowText result;
    for (const Load& load : loads_) {
      if (is_shared_weight(load)) write_load(load);
    }
    std::swap(text_, result.weights);
    for (const Load& load : loads_) {
      if (!is_shared_weight(load)) write_load(load);
    }
    for (size_t k = 0; k < stages_.size(); ++k) {
      const Stage& stage = stages_[k];
      locals_.push_back({fmt::format("l{}", k), {}});
      if (row_loop(stage) == nullptr) {
        write_scalar(k);
      } else if (is_row(stage)) {
        write_row(k);
      } else {
        write_reduction(k);
      }
    }
    result.point = std::move(text_);
    return result;
  }

 private:
  // A load that is done once, into registers `name`[chunk][element].
  struct Load {
    std::string name;
    int buffer;
    std::vector<Dim> index;
    std::vector<const ExprNode*> nodes;
  };

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  const loops::Buffer& buffer_of(int number) const { return kernel_.buffers[static_cast<size_t>(number)]; }

  Dim offset_of(int buffer, const std::vector<Dim>& index) const {
    const TensorType& type = buffer_of(buffer).type;
    return storage_offset(type.layout, type.shape, index);
  }

  bool is_neighbourly(int buffer, const std::vector<Dim>& index) const {
    return are_in_vectors(buffer_of(buffer), index, kRowVariable);
  }

  // Loads along the row from buffers that no stage writes, which are safe for every element.
  bool is_read_once(const ExprNode& node) const {
    const loops::Buffer& buffer = buffer_of(node.buffer);
    if (buffer.access != loops::Access::kRead) return false;
    const bool along_row = std::ranges::any_of(node.index, [](const Dim& index) {
      const auto symbols = index.symbols();
      return std::ranges::find(symbols, kRowVariable) != symbols.end();
    });
    return along_row && is_in_bounds(node, buffer.type.shape, row_scope_);
  }

  bool is_shared_weight(const Load& load) const {
    const bool is_weight = !are_weights_.empty() && are_weights_[static_cast<size_t>(load.buffer)];
    const auto is_of_point = [&](const std::string& symbol) {
      return std::ranges::find(kernel_.parallel, symbol, &Loop::variable) != kernel_.parallel.end();
    };
    return is_weight && std::ranges::none_of(load.index, [&](const Dim& index) {
             return std::ranges::any_of(index.symbols(), is_of_point);
           });
  }

  void find_loads() {
    const auto most = static_cast<size_t>(kMostRegisters / (row_.chunks() * row_.wide));
    for (const Stage& stage : stages_) {
      loops::visit(stage.value, [&](const Expr& node) {
        if (node->kind != ExprNode::Kind::kLoad || !is_read_once(*node)) return;
        const auto same = [&](const Load& load) {
          return load.buffer == node->buffer && std::ranges::equal(load.index, node->index);
        };
        auto found = std::ranges::find_if(loads_, same);
        if (found == loads_.end()) {
          if (loads_.size() == most) return;
          loads_.push_back({fmt::format("w{}", loads_.size()), node->buffer, node->index, {}});
          found = loads_.end() - 1;
        }
        found->nodes.push_back(node.get());
      });
    }
  }

  // for chunk: for element: those of the row that this thread has
  void open_chunks() {
    line("#pragma unroll\nfor (int c = 0; c < {}; ++c) {{\nconst idx first = (c * {} + lane) * {};\n",
         row_.chunks(), row_.group, row_.wide);
    if (row_.extent % (int64_t{row_.group} * row_.wide) != 0) line("if (first < {}) {{\n", row_.extent);
  }
  void close_chunks() {
    if (row_.extent % (int64_t{row_.group} * row_.wide) != 0) line("}}\n");
    line("}}\n");
  }
  void open_neighbours() {
    line("#pragma unroll\nfor (int j = 0; j < {}; ++j) {{\nconst idx at = first + j;\n", row_.wide);
  }

  void write_load(const Load& load) {
    const DType dtype = buffer_of(load.buffer).type.dtype;
    const bool at_once = is_neighbourly(load.buffer, load.index);
    if (at_once)
      line("{}<{}> {}[{}];\n", vector_name(dtype), row_.wide, load.name, row_.chunks());
    else
      line("{} {}[{}][{}];\n", type_name(loops::arithmetic_dtype(dtype)), load.name, row_.chunks(),
           row_.wide);
    open_chunks();
    if (at_once) {
      line("const idx at = first;\nload_row({}[c], b{} + {});\n", load.name, load.buffer,
           row_scope_.text(offset_of(load.buffer, load.index)));
    } else {
      open_neighbours();
      const std::vector<LocalAccess> none;
      ExpressionWriter writer(kernel_, none, text_);
      const Expr value = loops::load(load.buffer, dtype, load.index);
      line("{}[c][j] = {};\n}}\n", load.name, writer.value(value, row_scope_, {}));
    }
    close_chunks();
  }

  std::string element_of(const Load& load) const {
    if (!is_neighbourly(load.buffer, load.index)) return load.name + "[c][j]";
    return fmt::format("number_of<{}>({}[c], j)", buffer_of(load.buffer).type.dtype == DType::kBF16,
                       load.name);
  }

  // The value of a stage, computed at this point of the code.
  std::string value_of(const Stage& stage, const IndexScope& scope) {
    ExpressionWriter writer(kernel_, locals_, text_);
    for (const Load& load : loads_) {
      for (const ExprNode* node : load.nodes) writer.replace_node(node, element_of(load));
    }
    loops::visit(stage.value, [&](const Expr& node) {
      if (node->kind == ExprNode::Kind::kLocal && is_row(stages_[static_cast<size_t>(node->stage)]))
        writer.replace_node(node.get(), fmt::format("l{}[c][j]", node->stage));
    });
    return writer.value(stage.value, scope, {});
  }

  void write_scalar(size_t k) {
    const Stage& stage = stages_[k];
    if (!stage.store) line("{} l{};\n", type_name(stage.value->dtype), k);
    line("{{\n");
    const std::string value = value_of(stage, scope_);
    if (stage.store) {
      line("if (lane == 0) ");
      write_store(stage, value, scope_);
    } else {
      line("l{} = {};\n", k, value);
    }
    line("}}\n");
  }

  void write_store(const Stage& stage, const std::string& value, const IndexScope& scope) {
    const int buffer = stage.store->buffer;
    text_ += store_text(buffer_of(buffer), fmt::format("b{}", buffer),
                        scope.text(offset_of(buffer, stage.store->index)), value);
  }

  void write_row(size_t k) {
    const Stage& stage = stages_[k];
    const std::string_view type = type_name(stage.value->dtype);
    const bool at_once = stage.store && is_neighbourly(stage.store->buffer, stage.store->index);
    if (!stage.store) line("{} l{}[{}][{}];\n", type, k, row_.chunks(), row_.wide);
    open_chunks();
    if (at_once) line("{} stored[{}];\n", type, row_.wide);
    open_neighbours();
    const std::string value = value_of(stage, row_scope_);
    if (!stage.store) line("l{}[c][j] = {};\n", k, value);
    if (at_once) line("stored[j] = {};\n", value);
    if (stage.store && !at_once) write_store(stage, value, row_scope_);
    line("}}\n");
    if (at_once)
      line("const idx at = first;\nstore_row<{}>(b{} + {}, stored);\n",
           buffer_of(stage.store->buffer).type.dtype == DType::kBF16, stage.store->buffer,
           row_scope_.text(offset_of(stage.store->buffer, stage.store->index)));
    close_chunks();
  }

  void write_reduction(size_t k) {
    const Stage& stage = stages_[k];
    const std::string_view type = type_name(stage.value->dtype), op = reduction_name(stage.combine);
    if (!stage.store) line("{} l{};\n", type, k);
    line("{{\n{} part = {};\n", type, identity_text(stage.combine, stage.value->dtype));
    open_chunks();
    open_neighbours();
    line("part = {}::apply(part, {});\n}}\n", op, value_of(stage, row_scope_));
    close_chunks();
    line("const {} all = reduce_group<{}, {}, {}>(part);\n", type, op, type, row_.group);
    if (stage.store) {
      line("if (lane == 0) ");
      write_store(stage, "all", scope_);
    } else {
      line("l{} = all;\n", k);
    }
    line("}}\n");
  }

  const Kernel& kernel_;
  const RegisterRow row_;
  const IndexScope& scope_;
  const std::vector<bool>& are_weights_;
  IndexScope row_scope_;
  const std::vector<Stage> stages_;
  std::vector<Load> loads_;
  std::vector<LocalAccess> locals_;
  std::string text_;
};

}  // namespace

std::vector<RegisterRow> register_rows(const Kernel& kernel) {
  const auto is_reduction = [](const Stage& stage) { return !stage.reduce.empty() && stage.loops.empty(); };
  const auto first = std::ranges::find_if(kernel.stages, is_reduction);
  if (first == kernel.stages.end() || first->reduce.size() != 1) return {};
  const auto extent = first->reduce[0].extent.constant();
  if (!extent || *extent < kShortestRow) return {};
  const auto fits = [&](const Stage& stage) { return is_stage_of_row(kernel, stage, *extent); };
  if (!std::ranges::all_of(kernel.stages, fits)) return {};
  std::vector<RegisterRow> rows;
  for (const int group : {kLanes, 4 * kLanes, kMostRowThreads}) {
    const RegisterRow row = divided_row(*extent, group);
    if (rows.empty() && row.chunks() * row.wide <= kMostOwn) rows.push_back(row);
  }
  // As many threads as have one vector each: shorter chains of instructions, but sums meet in shared memory.
  const int64_t warps = (*extent + kWidestVector * kLanes - 1) / (kWidestVector * kLanes);
  if (rows.empty() || warps * kLanes > kMostRowThreads || warps * kLanes == rows[0].group) return rows;
  rows.push_back(divided_row(*extent, static_cast<int>(warps * kLanes)));
  return rows;
}

RegisterRowText register_row_text(const Kernel& kernel, const RegisterRow& row, const IndexScope& scope,
                                  const std::vector<bool>& are_weights) {
  return RegisterRowWriter(kernel, row, scope, are_weights).write();
}

}  // namespace ingot::core::cuda
