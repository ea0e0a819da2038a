// SPDX-License-Identifier: Apache-2.0
// Engines without kernels, which run on every machine, and owners of C handles.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_file.h"
#include "ingot/build.h"
#include "tests/engine/engines.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core::testing {

struct Free {
  void operator()(ingot_status* status) const { ingot_status_free(status); }
  void operator()(ingot_text* text) const { ingot_text_free(text); }
  void operator()(ingot_engine* engine) const { ingot_engine_free(engine); }
  void operator()(ingot_context* context) const { ingot_context_free(context); }
  void operator()(ingot_builder* builder) const { ingot_builder_free(builder); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// The code of a status, "" for success; frees it.
inline std::string code_of(ingot_status* status) {
  const Owned<ingot_status> owner(status);
  return ingot_status_code(status);
}

inline std::string text_of(ingot_text* text) {
  const Owned<ingot_text> owner(text);
  return {ingot_text_data(text), ingot_text_size(text)};
}

// y = x, f32[B in 1..16, S in 1..256].
inline EngineData echo_engine() {
  EngineData engine{.name = "echo", .origin = "a test", .key = "key of echo", .target = "null"};
  engine.main = chain();
  return engine;
}

// y = w, a weight of four floats; x is not read.
inline EngineData weight_engine() {
  EngineData engine = echo_engine();
  engine.sources.push_back({.name = "w", .shape = {4}, .data = bytes_of({1, 2, 3, 4})});
  engine.weights.push_back(
      {.name = "w", .type = f32({4}), .origin = FromSource{0}, .data = engine.sources[0].data, .bytes = 16});
  const BufferId weight = add_buffer(engine.main, "w", f32({4}), WeightStorage{0});
  const BufferId z = add_output(engine.main, "z", f32({4}));
  engine.main.steps.push_back(copy_step(weight, z));
  return engine;
}

// The input "target" becomes x; both are f32[4].
inline EngineData updating_engine() {
  EngineData engine{.name = "update", .origin = "a test", .key = "key of update", .target = "null"};
  const BufferId x = add_buffer(engine.main, "x", f32({4}), InputStorage{0});
  engine.main.inputs.push_back({"x", f32({4}), x});
  const BufferId target = add_buffer(engine.main, "target", f32({4}), StateStorage{0});
  engine.main.states.push_back({"target", f32({4}), target});
  const BufferId y = add_output(engine.main, "y", f32({4}));
  engine.main.steps = {copy_step(x, target), copy_step(x, y)};
  engine.state_values.push_back({nullptr, DType::kF32, {4}});
  engine.signature = {.argument_names = {"target", "x"},
                      .input_tree = "",
                      .output_tree = "",
                      .inputs = {TensorSlot{}, TensorSlot{}},
                      .outputs = {TensorSlot{}},
                      .mutated_inputs = {0}};
  return engine;
}

// A file in a folder of its own, removed at the end.
class EngineOnDisk {
 public:
  explicit EngineOnDisk(const EngineData& data) {
    write_file_atomically(path(), [&](const Sink& sink) { write_engine(data, sink); });
  }
  std::string path(const char* name = "model.ingot") const { return (folder_.path() / name).string(); }

 private:
  TemporaryFolder folder_;
};

inline Owned<ingot_engine> load(const std::string& path, const ingot_load_options* options = nullptr) {
  ingot_engine* engine = nullptr;
  EXPECT_EQ(code_of(ingot_engine_load(path.c_str(), options, &engine)), "");
  return Owned<ingot_engine>(engine);
}

inline Owned<ingot_context> context_of(ingot_engine* engine) {
  ingot_context* context = nullptr;
  EXPECT_EQ(code_of(ingot_context_create(engine, &context)), "");
  return Owned<ingot_context>(context);
}

// Outputs as vectors of floats, for ingot_allocate.
struct FloatOutputs {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<int64_t>> shapes;

  static void* allocate(void* user, size_t index, int32_t, int32_t rank, const int64_t* shape, size_t bytes) {
    auto& own = *static_cast<FloatOutputs*>(user);
    if (own.values.size() <= index) own.values.resize(index + 1);
    if (own.shapes.size() <= index) own.shapes.resize(index + 1);
    own.shapes[index].assign(shape, shape + rank);
    own.values[index].resize(bytes / sizeof(float));
    return own.values[index].data();
  }
};

}  // namespace ingot::core::testing
