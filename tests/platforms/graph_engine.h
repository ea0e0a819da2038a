// SPDX-License-Identifier: Apache-2.0
// Graphs as engines of their own: the file is written and opened, and outputs are as the interpreter says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/compiler/backends.h"
#include "compiler/accuracy.h"
#include "compiler/compile.h"
#include "engine/engine_file.h"
#include "ingot/context.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {

inline bool is_packed(const Value* value) { return !value->type.layout.is_row_major(); }

// Callers give sizes by the shapes of inputs alone.
inline bool has_sizes_of_inputs(const Graph& graph) {
  return std::ranges::all_of(graph.symbols, [&](const auto& symbol) {
    const auto binds = [&](const Value* input) {
      return std::ranges::find(input->type.shape, Dim::symbol(symbol.first)) != input->type.shape.end();
    };
    return symbol.second.upper_bound || std::ranges::any_of(graph.inputs(), binds);
  });
}

// Nothing where the record rejects the dtype, for operands in layouts that callers do not have, and for sizes
// that they cannot give.
inline std::optional<SampleGraph> sample_of(const Op& op, const Sample& sample, DType dtype) {
  try {
    SampleGraph made = make_sample_graph(op, sample, dtype);
    if (std::ranges::any_of(made.graph.inputs(), is_packed) || !has_sizes_of_inputs(made.graph))
      return std::nullopt;
    for (Value*& output : made.graph.outputs) {
      if (is_packed(output)) output = made.graph.call(ops::relayout, {output}, ops::Relayout{});
    }
    return made;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// The engine's file; nothing if Ingot does not run it.
inline std::optional<std::vector<std::byte>> build_engine(const Graph& graph,
                                                          std::map<std::string, std::string> choices) {
  choices.merge(std::map<std::string, std::string>{{"threads", "1"}, {"engine_cache_dir", "off"}});
  CompileOptions options = parse_options(choices);
  options.cache.reuse = options.cache.keep = false;
  aten::Program program;
  program.origin = "a sample";
  const auto import = [&] {
    aten::Imported model{.graph = graph.clone()};
    model.input_slots.assign(graph.inputs().size(), TensorSlot{});
    model.output_slots.assign(graph.outputs.size(), TensorSlot{});
    return model;
  };
  try {
    const auto engine = compile_model(program, import, options, api::backends());
    std::vector<std::byte> file;
    write_engine(*engine, [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
    return file;
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

inline std::vector<ingot::Tensor> borrowed(const std::vector<Tensor>& tensors) {
  std::vector<ingot::Tensor> result;
  for (const Tensor& tensor : tensors)
    result.emplace_back(static_cast<void*>(tensor.data.get()), static_cast<ingot::DType>(tensor.dtype),
                        tensor.shape);
  return result;
}

inline void expect_near(const Tensor& expected, const ingot::Tensor& got) {
  ASSERT_EQ(expected.shape, got.shape());
  const std::vector<double> wanted = values_of(expected);
  Tensor dense{.data = {static_cast<std::byte*>(got.data()), [](std::byte*) {}},
               .dtype = expected.dtype,
               .shape = expected.shape};
  const std::vector<double> values = values_of(dense);
  double squares = 0;
  for (const double value : wanted) squares += std::isfinite(value) ? value * value : 0;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(wanted.size(), 1)));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_TRUE(agree(wanted[i], values[i], allowed_difference(expected.dtype, wanted[i], rms)))
        << "element " << i << ": " << values[i] << ", not " << wanted[i];
}

inline std::vector<const Op*> ops_with_samples() {
  std::vector<const Op*> found;
  std::ranges::copy_if(ops::all_ops(), std::back_inserter(found),
                       [](const Op* op) { return op->samples != nullptr; });
  return found;
}

}  // namespace ingot::core::test
