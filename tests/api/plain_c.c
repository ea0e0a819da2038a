/* SPDX-License-Identifier: Apache-2.0 */
/* The header is C11; called by plain_c_test.cpp. */
#include "ingot/build.h"

static float result[4];

static void* allocate(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                      size_t bytes) {
  (void)user, (void)index, (void)dtype, (void)rank, (void)shape;
  return bytes <= sizeof(result) ? result : NULL;
}

/* The last element of y for x = {1, 2, 3, 4}, or -1 after an error. */
float run_from_c(const char* path);
float run_from_c(const char* path) {
  ingot_engine* engine = NULL;
  ingot_context* context = NULL;
  float x[4] = {1, 2, 3, 4};
  const int64_t shape[2] = {1, 4};
  const ingot_tensor input = {.data = x, .dtype = INGOT_F32, .rank = 2, .shape = shape};
  ingot_status* status = ingot_engine_load(path, NULL, &engine);
  if (status == NULL) status = ingot_context_create(engine, &context);
  if (status == NULL) status = ingot_context_run(context, 1, &input, allocate, NULL);
  ingot_context_free(context);
  ingot_engine_free(engine);
  const int failed = status != NULL;
  ingot_status_free(status);
  return failed ? -1 : result[3];
}
