/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an engine on made-up inputs, by their names; needs the runtime library only.
 *   cc main.c $(pkg-config --cflags --libs ingot-runtime) -o example && ./example model.ingot */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <ingot/ingot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <malloc.h>
#include <windows.h>
#endif

#define MOST_TENSORS 16
#define MOST_DIMS 8

static void* allocate_aligned(size_t bytes) {
#ifdef _WIN32
  return _aligned_malloc(bytes, 64);
#else
  return aligned_alloc(64, (bytes + 64) / 64 * 64);
#endif
}

static void free_aligned(void* memory) {
#ifdef _WIN32
  _aligned_free(memory);
#else
  free(memory);
#endif
}

/* Prints what a status says and ends; a program that goes on would free the status. */
static void check(ingot_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", ingot_status_text(status));
  exit(1);
}

struct output {
  int32_t dtype, rank;
  int64_t shape[MOST_DIMS];
  void* data;
};

static void* allocate(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                      size_t bytes) {
  struct output* output = (struct output*)user + index;
  if (index >= MOST_TENSORS || rank > MOST_DIMS) return NULL;
  output->dtype = dtype;
  output->rank = rank;
  memcpy(output->shape, shape, (size_t)rank * sizeof(*shape));
  free_aligned(output->data);
  output->data = allocate_aligned(bytes);
  return output->data;
}

/* The smallest sizes that the engine takes; floats are 0.5, all else is zero. */
static ingot_tensor make_input(const ingot_port* port, int64_t* shape) {
  size_t elements = 1;
  for (int32_t i = 0; i < port->rank; ++i) {
    shape[i] = port->min[i] < 1 ? 1 : port->min[i];
    elements *= (size_t)shape[i];
  }
  ingot_tensor input = {.data = calloc(elements, 16),
                        .dtype = port->dtype,
                        .rank = port->rank,
                        .shape = shape,
                        .device_type = INGOT_DEVICE_CPU};
  if (port->dtype == INGOT_F32)
    for (size_t i = 0; i < elements; ++i) ((float*)input.data)[i] = 0.5F;
  return input;
}

static void print(const ingot_engine* engine, size_t index, const struct output* output) {
  ingot_port port = {.struct_size = sizeof(port)};
  check(ingot_engine_output(engine, index, &port));
  printf("%s: [", port.name);
  size_t elements = 1;
  for (int32_t i = 0; i < output->rank; ++i) {
    printf(" %lld", (long long)output->shape[i]);
    elements *= (size_t)output->shape[i];
  }
  printf(" ]");
  for (size_t i = 0; output->dtype == INGOT_F32 && i < elements && i < 4; ++i)
    printf(" %.5f", ((const float*)output->data)[i]);
  printf("\n");
}

/* Nanoseconds of the clock that deadlines are of. */
static int64_t now(void) {
#ifdef _WIN32
  LARGE_INTEGER ticks, per_second;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&per_second);
  const int64_t seconds = ticks.QuadPart / per_second.QuadPart, rest = ticks.QuadPart % per_second.QuadPart;
  return seconds * INT64_C(1000000000) + rest * INT64_C(1000000000) / per_second.QuadPart;
#else
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
#endif
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s model.ingot\n", argv[0]);
    return 2;
  }
  ingot_engine* engine = NULL;
  ingot_context* context = NULL;
  check(ingot_engine_load(argv[1], NULL, &engine));
  const ingot_context_options context_options = {.struct_size = sizeof(context_options), .threads = 2};
  check(ingot_context_create_with(engine, &context_options, &context));
  for (size_t i = 0; i < ingot_engine_metadata_count(engine); ++i) {
    const char* key = ingot_engine_metadata_key(engine, i);
    printf("%s = %s\n", key, ingot_engine_metadata_value(engine, key));
  }

  ingot_tensor inputs[MOST_TENSORS];
  const char* names[MOST_TENSORS];
  int64_t shapes[MOST_TENSORS][MOST_DIMS];
  struct output outputs[MOST_TENSORS] = {0};
  const size_t count = ingot_engine_input_count(engine);
  if (count > MOST_TENSORS) return 1;
  for (size_t i = 0; i < count; ++i) {
    ingot_port port = {.struct_size = sizeof(port)};
    check(ingot_engine_input(engine, i, &port));
    if (port.rank > MOST_DIMS) return 1;
    inputs[i] = make_input(&port, shapes[i]);
    names[i] = port.name; /* lives as long as the engine */
  }
  const ingot_run_options run_options = {.struct_size = sizeof(run_options),
                                         .allocate = allocate,
                                         .user = outputs,
                                         .deadline_ns = now() + INT64_C(10000000000)};
  check(ingot_context_run_with(context, count, names, inputs, &run_options));
  for (size_t i = 0; i < ingot_engine_output_count(engine); ++i) print(engine, i, &outputs[i]);

  for (size_t i = 0; i < MOST_TENSORS; ++i) free_aligned(outputs[i].data);
  for (size_t i = 0; i < count; ++i) free(inputs[i].data);
  ingot_context_free(context);
  ingot_engine_free(engine);
  return 0;
}
