// SPDX-License-Identifier: Apache-2.0
// Graphs as engines of their own: the file is written and opened, and outputs are as the interpreter says.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/compiler/backends.h"
#include "compiler/compile.h"
#include "engine/engine_file.h"
#include "ingot/context.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {

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
  ASSERT_EQ(static_cast<int>(expected.dtype), static_cast<int>(got.dtype()));
  expect_near(expected, Tensor{.data = {static_cast<std::byte*>(got.data()), [](std::byte*) {}},
                               .dtype = expected.dtype,
                               .shape = got.shape()});
}

}  // namespace ingot::core::test
