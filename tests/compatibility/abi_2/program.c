/* SPDX-License-Identifier: Apache-2.0 */
/* A program as users write them against version 2 of the C ABI: compiled with the header beside it, which stays
 * as it was, and linked with today's library. Runs the golden engine "mlp".
 *   program ENGINE INPUT OUTPUT: floats of one input, and of the output, as they are in memory */
#include <ingot/ingot.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);     \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

enum { kRows = 3, kColumns = 8, kOutputs = 4 };

/* A struct that a newer library must not write past. */
#define GUARDED(type, name) \
  struct {                  \
    type value;             \
    uint64_t guard;         \
  } name = {.value = {.struct_size = sizeof(type)}, .guard = 0x123456789abcdef0}
#define EXPECT_GUARD(name) EXPECT((name).guard == 0x123456789abcdef0)

static void check(ingot_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", ingot_status_text(status));
  exit(1);
}

static void expect_error(ingot_status* status, ingot_error_kind kind, const char* code) {
  EXPECT(status != NULL);
  EXPECT(ingot_status_kind(status) == kind);
  EXPECT(strcmp(ingot_status_code(status), code) == 0);
  EXPECT(ingot_status_message(status)[0] != 0 && ingot_explain(code) != NULL);
  ingot_status_free(status);
}

static int messages = 0;
static void count_message(void* user, int32_t level, const char* message) {
  EXPECT(user == &messages && level <= INGOT_LOG_INFO && message[0] != 0);
  ++messages;
}

static int blocks = 0;
static void* allocate_memory(void* user, size_t bytes, size_t alignment) {
  ++*(int*)user;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void release_memory(void* user, void* memory, size_t bytes) {
  (void)bytes;
  --*(int*)user;
  free(memory);
}

static void* allocate_output(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                             size_t bytes) {
  EXPECT(index == 0 && dtype == INGOT_F32 && rank == 2 && shape[0] == kRows && shape[1] == kOutputs);
  EXPECT(bytes == sizeof(float) * kRows * kOutputs);
  return user;
}

static void describe(const ingot_engine* engine) {
  EXPECT(ingot_engine_input_count(engine) == 1 && ingot_engine_output_count(engine) == 1);
  EXPECT(ingot_engine_state_count(engine) == 0 && ingot_engine_gpu(engine) == -1);
  GUARDED(ingot_port, port);
  check(ingot_engine_input(engine, 0, &port.value));
  EXPECT_GUARD(port);
  EXPECT(port.value.dtype == INGOT_F32 && port.value.rank == 2 && port.value.max[0] == kRows);
  EXPECT(strcmp(port.value.dims[1], "8") == 0);
  size_t index = 7;
  check(ingot_engine_find_input(engine, port.value.name, &index));
  EXPECT(index == 0);
  expect_error(ingot_engine_find_output(engine, "none", &index), INGOT_USER_ERROR, "INGOT-U318");
  ingot_text* json = NULL;
  check(ingot_engine_inspect(engine, &json));
  EXPECT(ingot_text_size(json) > 100 && strstr(ingot_text_data(json), "\"inputs\"") != NULL);
  ingot_text_free(json);
  check(ingot_engine_signature(engine, &json));
  ingot_text_free(json);
}

static void run(ingot_engine* engine, const ingot_tensor* input, float* output) {
  const ingot_allocator allocator = {allocate_memory, release_memory, &blocks};
  const ingot_context_options options = {
      .struct_size = sizeof(options), .threads = 1, .allocator = &allocator};
  ingot_context* context = NULL;
  check(ingot_context_create_with(engine, &options, &context));
  check(ingot_context_set_profiling(context, 1));
  check(ingot_context_run(context, 1, input, allocate_output, output));
  float again[kRows * kOutputs];
  int32_t cancel = 0;
  ingot_run_options run_options = {
      .struct_size = sizeof(run_options), .allocate = allocate_output, .user = again, .cancel = &cancel};
  check(ingot_context_run_with(context, 1, NULL, input, &run_options));
  EXPECT(memcmp(again, output, sizeof(again)) == 0);
  ingot_tensor* owned = NULL;
  check(ingot_context_run_owned(context, 1, NULL, input, NULL, &owned));
  EXPECT(owned->rank == 2 && memcmp(owned->data, output, sizeof(again)) == 0);
  ingot_tensor_free(owned);
  cancel = 1;
  expect_error(ingot_context_run_with(context, 1, NULL, input, &run_options), INGOT_USER_ERROR, "INGOT-U316");
  int64_t shape[4];
  size_t length = 0;
  check(ingot_context_output_shapes(context, 1, input, shape, 4, &length));
  EXPECT(length == 2 && shape[0] == kRows && shape[1] == kOutputs);
  GUARDED(ingot_memory, memory);
  check(ingot_context_memory(context, &memory.value));
  EXPECT_GUARD(memory);
  EXPECT(memory.value.weights > 0 && memory.value.cached_plans == 1 && blocks > 0);
  ingot_text* profile = NULL;
  check(ingot_context_profile(context, &profile));
  ingot_text_free(profile);
  check(ingot_context_synchronize(context));
  ingot_context_free(context);
  EXPECT(blocks == 0);
}

/* Weights of a copy change what it computes, and leave the engine as it was. */
static void refit(const ingot_engine* engine, const ingot_tensor* input, const float* expected) {
  ingot_engine* copy = NULL;
  check(ingot_engine_copy(engine, &copy));
  EXPECT(ingot_engine_weight_count(copy) == 6);
  const float values[kOutputs] = {1, 2, 3, 4};
  const int64_t shape[1] = {kOutputs};
  const ingot_tensor value = {.data = (void*)values, .dtype = INGOT_F32, .rank = 1, .shape = shape};
  const char* name = "3.bias";
  EXPECT(ingot_engine_knows_tensor(copy, name) == 1);
  const ingot_refit_options options = {.struct_size = sizeof(options), .partial = 1};
  check(ingot_engine_refit(copy, 1, &name, &value, &options));
  ingot_context* context = NULL;
  check(ingot_context_create(copy, &context));
  float output[kRows * kOutputs];
  check(ingot_context_run(context, 1, input, allocate_output, output));
  EXPECT(memcmp(output, expected, sizeof(output)) != 0);
  const char* unknown = "none";
  expect_error(ingot_engine_refit(copy, 1, &unknown, &value, &options), INGOT_USER_ERROR, "INGOT-U320");
  ingot_context_free(context);
  ingot_engine_free(copy);
}

static void pass_on(const ingot_engine* engine) {
  ingot_text* bytes = NULL;
  check(ingot_engine_save_memory(engine, &bytes));
  ingot_engine* loaded = NULL;
  const ingot_load_options options = {.struct_size = sizeof(options), .memory = INGOT_MEMORY_COPY};
  check(ingot_engine_load_memory(ingot_text_data(bytes), ingot_text_size(bytes), NULL, NULL, &options, &loaded));
  ingot_text_free(bytes);
  describe(loaded);
  ingot_engine_free(loaded);
}

static void read_floats(const char* path, float* values, size_t count) {
  FILE* file = fopen(path, "rb");
  EXPECT(file != NULL && fread(values, sizeof(float), count, file) == count);
  fclose(file);
}

int main(int argc, char** argv) {
  EXPECT(argc == 4);
  EXPECT(ingot_abi_version() == INGOT_ABI_VERSION && strchr(ingot_version(), '.') != NULL);
  check(ingot_set_logger(count_message, &messages, INGOT_LOG_INFO));
  check(ingot_set_threads(1));
  EXPECT(ingot_get_threads() == 1);
  expect_error(ingot_engine_load("/no/such/file", NULL, &(ingot_engine*){NULL}), INGOT_USER_ERROR, "INGOT-U120");
  check(ingot_verify_file(argv[1]));
  const ingot_load_options options = {.struct_size = sizeof(options), .verify = INGOT_VERIFY_FULL};
  ingot_engine* engine = NULL;
  check(ingot_engine_load(argv[1], &options, &engine));
  describe(engine);
  float values[kRows * kColumns], output[kRows * kOutputs];
  read_floats(argv[2], values, kRows * kColumns);
  const int64_t shape[2] = {kRows, kColumns};
  const ingot_tensor input = {
      .data = values, .dtype = INGOT_F32, .rank = 2, .shape = shape, .device_type = INGOT_DEVICE_CPU};
  run(engine, &input, output);
  refit(engine, &input, output);
  pass_on(engine);
  ingot_engine_free(engine);
  EXPECT(messages > 0);
  FILE* file = fopen(argv[3], "wb");
  EXPECT(file != NULL && fwrite(output, sizeof(output), 1, file) == 1 && fclose(file) == 0);
  return 0;
}
