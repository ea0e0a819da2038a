/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an engine of one f32 input [n,24] on ones into memory of the library: prints rank, sizes and bits of the first value of the
 * first output, after everything else was freed. */
#include <ingot/ingot.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail(ingot_status* status) {
  fprintf(stderr, "%s\n", ingot_status_text(status));
  ingot_status_free(status);
  return 1;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  ingot_engine* engine = NULL;
  ingot_status* status = ingot_engine_load(arguments[1], NULL, &engine);
  if (status != NULL) return fail(status);
  ingot_context* context = NULL;
  status = ingot_context_create(engine, &context);
  if (status != NULL) return fail(status);
  float values[5 * 24];
  for (size_t i = 0; i < 5 * 24; ++i) values[i] = 1;
  const int64_t shape[] = {5, 24};
  const ingot_tensor input = {.data = values, .dtype = INGOT_F32, .rank = 2, .shape = shape};
  ingot_tensor* outputs[4] = {NULL};
  if (ingot_engine_output_count(engine) > 4) return 2;
  status = ingot_context_run_owned(context, 1, NULL, &input, NULL, outputs);
  if (status != NULL) return fail(status);
  ingot_context_free(context);
  ingot_engine_free(engine);
  uint32_t bits;
  memcpy(&bits, outputs[0]->data, sizeof(bits));
  printf("%d", (int)outputs[0]->rank);
  for (int32_t axis = 0; axis < outputs[0]->rank; ++axis) printf(" %d", (int)outputs[0]->shape[axis]);
  printf(" %08" PRIx32 "\n", bits);
  for (size_t i = 0; i < 4; ++i) ingot_tensor_free(outputs[i]);
  return 0;
}
