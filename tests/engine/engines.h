// SPDX-License-Identifier: Apache-2.0
// A small engine that uses every part of the format.
#pragma once

#include <cstring>

#include "engine/engine_data.h"
#include "engine/engine_file.h"
#include "engine/levels.h"
#include "tests/engine/programs.h"

namespace ingot::core::testing {

inline std::shared_ptr<std::byte> bytes_of(const std::vector<float>& values) {
  Tensor tensor = make_tensor(DType::kF32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.data.get(), values.data(), tensor.bytes());
  return tensor.data;
}

// main: t = kernel(x, w, c, p), y = copy(t), state k updated by kernel; init: p = kernel(w).
inline EngineData small_engine() {
  EngineData engine{.name = "small", .origin = "a test", .key = "key of small", .target = "null"};
  engine.images.push_back({.kernel = "k", .target = "null", .code = {std::byte{}}});
  engine.sources.push_back({.name = "layer.w", .shape = {4}, .data = bytes_of({1, 2, 3, 4})});
  engine.weights.push_back({.name = "layer.w",
                            .type = f32({4}),
                            .origin = FromSource{0},
                            .data = engine.sources[0].data,
                            .bytes = 16});
  engine.weights.push_back({.name = "c", .type = f32({2}), .data = bytes_of({5, 6}), .bytes = 8});
  engine.weights.push_back({.name = "init.0",
                            .type = f32({4}),
                            .origin = FromInit{0},
                            .data = bytes_of({7, 8, 9, 10}),
                            .bytes = 16});
  engine.init.name = "init";
  const BufferId w = add_buffer(engine.init, "layer.w", f32({4}), WeightStorage{0});
  const BufferId p = add_output(engine.init, "p", f32({4}));
  engine.init.steps = {kernel_step("pack", {w}, {p})};

  Program& main = engine.main = chain();
  const BufferId weight = add_buffer(main, "layer.w", f32({4}), WeightStorage{0});
  const BufferId constant = add_buffer(main, "c", f32({2}), ConstantStorage{1});
  const BufferId packed = add_buffer(main, "p", f32({4}), WeightStorage{2});
  const BufferId state = add_buffer(main, "k", f32({3}), StateStorage{0});
  main.states.push_back({"k", f32({3}), state});
  main.steps[1] = kernel_step("mix", {1, weight, constant, packed}, {2, state});
  main.steps[1].as<KernelStep>()->launch = {.image = 0,
                                            .symbols = {Dim::symbol("S")},
                                            .sizes = {Dim::symbol("B") * Dim::symbol("S"), 128},
                                            .constants = {16, -1}};
  main.steps[1].nodes = {0};
  engine.nodes.push_back({"linear_1", "aten.linear.default", "model.py:12 in forward"});
  engine.metadata = {{"commit", "1a2b3c"}, {"note", ""}};
  engine.checks.push_back({.kind = CheckKind::kBounds,
                           .condition = parse_predicate("S <= 256 & [B < 20 | mod(S, 2) == 0]"),
                           .message = "slice",
                           .node = "slice_1",
                           .source = "model.py:13 in forward"});
  engine.state_values.push_back({bytes_of({0.5, 0.25, 1}), DType::kF32, {3}});
  engine.signature = {.argument_names = {"x"},
                      .input_tree = "[*]",
                      .output_tree = "*",
                      .inputs = {TensorSlot{}, PlainValue(int64_t{3})},
                      .outputs = {TensorSlot{}},
                      .mutated_inputs = {std::nullopt}};
  return engine;
}

inline std::vector<std::byte> to_bytes(const EngineData& engine) {
  std::vector<std::byte> bytes;
  write_engine(engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

inline std::shared_ptr<const EngineFile> open(const std::vector<std::byte>& bytes) {
  return EngineFile::open(Bytes(bytes), nullptr);
}

// Several levels of one engine, as a build makes them; the first is in use.
inline EngineData engine_of_levels(const std::vector<std::string>& cpus,
                                   EngineData (*make)() = small_engine) {
  const auto level = [&](const std::string& cpu) {
    EngineData engine = make();
    engine.target = "cpu:" + cpu + " level=3";
    engine.key += " for " + cpu;
    engine.weights_form = WeightsForm::kOriginal;
    return engine;
  };
  EngineData engine = level(cpus[0]);
  for (size_t i = 1; i < cpus.size(); ++i)
    engine.other_levels.push_back(std::make_shared<EngineData>(level(cpus[i])));
  share_sources(engine);
  return engine;
}

}  // namespace ingot::core::testing
