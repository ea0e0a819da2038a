// SPDX-License-Identifier: Apache-2.0
// NULL is rejected by name everywhere, and harmless where nothing can be rejected.
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

TEST(Null, IsRefusedByWhatFails) {
  ingot_engine* engine = nullptr;
  ingot_text* text = nullptr;
  ingot_port port{};
  uint32_t value = 0;
  int64_t graph = 0;
  size_t length = 0;
  ingot_file* file = nullptr;
  ingot_status* const statuses[] = {
      ingot_status_create(INGOT_USER_ERROR, nullptr, "message", nullptr),
      ingot_status_create(INGOT_USER_ERROR, "INGOT-U001", nullptr, nullptr),
      ingot_file_create(nullptr, &file),
      ingot_file_create("file", nullptr),
      ingot_file_write(nullptr, nullptr, 0),
      ingot_file_finish(nullptr),
      ingot_engine_load(nullptr, nullptr, &engine),
      ingot_engine_load("model.ingot", nullptr, nullptr),
      ingot_engine_load_memory(nullptr, 0, nullptr, nullptr, nullptr, &engine),
      ingot_engine_save(nullptr, "model.ingot"),
      ingot_engine_save_memory(nullptr, &text),
      ingot_verify_file(nullptr),
      ingot_engine_inspect(nullptr, &text),
      ingot_engine_export_onnx(nullptr, nullptr, &text),
      ingot_export_onnx(nullptr, nullptr, nullptr, &text),
      ingot_export_onnx("model.ingot", nullptr, nullptr, nullptr),
      ingot_inspect_file(nullptr, &text),
      ingot_engine_input(nullptr, 0, &port),
      ingot_engine_output(nullptr, 0, &port),
      ingot_engine_state(nullptr, 0, &port),
      ingot_engine_signature(nullptr, &text),
      ingot_engine_refit(nullptr, 0, nullptr, nullptr, nullptr),
      ingot_engine_take_weights(nullptr, nullptr),
      ingot_engine_weight_memory(nullptr, nullptr),
      ingot_engine_set_weight_budget(nullptr, "50%"),
      ingot_open_tensors(nullptr, nullptr),
      ingot_engine_find_input(nullptr, "x", &length),
      ingot_engine_find_output(nullptr, "x", &length),
      ingot_engine_find_state(nullptr, "x", &length),
      ingot_context_create(nullptr, nullptr),
      ingot_context_create_with(nullptr, nullptr, nullptr),
      ingot_context_run_with(nullptr, 0, nullptr, nullptr, nullptr),
      ingot_context_run(nullptr, 0, nullptr, FloatOutputs::allocate, nullptr),
      ingot_context_run_owned(nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      ingot_context_output_shapes(nullptr, 0, nullptr, nullptr, 0, &length),
      ingot_context_bind_state(nullptr, 0, nullptr),
      ingot_context_take_states(nullptr, nullptr),
      ingot_context_reset_states(nullptr),
      ingot_context_memory(nullptr, nullptr),
      ingot_option_describe(0, nullptr),
      ingot_builder_create("", nullptr),
      ingot_builder_symbol(nullptr, "S", 0, 1, -1),
      ingot_builder_guard(nullptr, "S == 1"),
      ingot_builder_pass_numbers(nullptr),
      ingot_builder_guards(nullptr, &text),
      ingot_builder_value(nullptr, nullptr, &value),
      ingot_builder_input(nullptr, nullptr),
      ingot_builder_node(nullptr, nullptr),
      ingot_builder_output(nullptr, nullptr, 0, nullptr),
      ingot_builder_begin_graph(nullptr),
      ingot_builder_end_graph(nullptr, &graph),
      ingot_builder_signature(nullptr, nullptr, nullptr, 0, nullptr),
  };
  for (ingot_status* status : statuses) EXPECT_EQ(code_of(status), "INGOT-U012");
}

TEST(Null, IsNothingToCountOrFree) {
  EXPECT_EQ(ingot_engine_input_count(nullptr), 0u);
  EXPECT_EQ(ingot_engine_output_count(nullptr), 0u);
  EXPECT_EQ(ingot_engine_state_count(nullptr), 0u);
  EXPECT_EQ(ingot_engine_weight_count(nullptr), 0u);
  EXPECT_EQ(ingot_engine_weight_name(nullptr, 0), nullptr);
  EXPECT_EQ(ingot_engine_metadata_count(nullptr), 0u);
  EXPECT_EQ(ingot_engine_metadata_key(nullptr, 0), nullptr);
  EXPECT_EQ(ingot_engine_metadata_value(nullptr, "key"), nullptr);
  EXPECT_EQ(ingot_engine_state_input(nullptr, 0), -1);
  ingot_engine_free(nullptr);
  ingot_context_free(nullptr);
  ingot_tensor_free(nullptr);
  ingot_builder_free(nullptr);
  ingot_file_free(nullptr);
  EXPECT_EQ(ingot_engine_input_is_updated(nullptr, 0), 0);
}

}  // namespace
}  // namespace ingot::core::testing
