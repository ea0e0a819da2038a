/* SPDX-License-Identifier: Apache-2.0 */
/* The C API of Ingot: engines and contexts. Stable: functions and enum values are only added, structs grow at
 * their end and begin with their size (`struct_size`, which the caller sets to sizeof of the struct: fields
 * that an older caller lacks count as zero). No exception crosses it. Every function that can fail returns
 * NULL or a status that the caller frees. Handles may be used from several threads at once, except that two
 * runs of one context may not overlap and a builder belongs to one thread. Strings are UTF-8 and
 * zero-terminated; a `const char*` that a function returns lives as long as the handle it came from.
 *
 * This header has what opens and runs engines, in libingot_runtime; build.h has what builds them. base.h,
 * which it includes, has versions, errors and tensors. */
#ifndef INGOT_INGOT_H
#define INGOT_INGOT_H

#include "ingot/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engines ---- */
typedef struct ingot_engine ingot_engine;
typedef enum ingot_verify { INGOT_VERIFY_LAZY = 0, INGOT_VERIFY_FULL = 1 } ingot_verify;
typedef enum ingot_trust { INGOT_TRUST_ANY = 0, INGOT_TRUST_SIGNED = 1, INGOT_TRUST_NONE = 2 } ingot_trust;
/* COPY: the file, or the caller's memory, is copied, so that later changes of it have no effect. */
typedef enum ingot_file_memory { INGOT_MEMORY_MAP = 0, INGOT_MEMORY_COPY = 1 } ingot_file_memory;
typedef struct ingot_load_options {
  size_t struct_size;
  int32_t verify; /* ingot_verify */
  int32_t trust;  /* ingot_trust */
  int32_t memory; /* ingot_file_memory */
  /* For INGOT_TRUST_SIGNED, which runs only engines that one of these keys signed (INGOT-U222), and copies
   * the file: a file of public keys. NULL: the file that the environment variable INGOT_TRUSTED_KEYS names.
   */
  const char* trusted_keys;
  /* Not 0: an engine that was built with `weights_file` does not open that file: a refit gives its weights.
   * Otherwise they are compared with the digests that the engine has (INGOT-U334); U335: there is no file. */
  int32_t without_weights;
  const char* weight_budget; /* as of ingot_engine_set_weight_budget; NULL: all */
  /* Of an engine for GPUs: the one that it runs on and has its weights on, as the driver counts those that it
   * shows. INGOT-D402 if there is no such GPU. */
  int32_t gpu;
  const char* rank; /* as of ingot_refit_options: for weights that come from files */
  /* Of an engine that was built for several processors: which of these levels is used, such as "x86-64-v3".
   * NULL: the best that this machine has. INGOT-U220: the engine has no such level. */
  const char* cpu;
} ingot_load_options;
/* With INGOT_MEMORY_MAP the file must not change while the engine is in use, though another file may be given
 * its name: runs use whatever is written to it, and truncating it ends the process with SIGBUS. */
INGOT_API ingot_status* ingot_engine_load(const char* path, const ingot_load_options* options,
                                          ingot_engine** engine);
/* `release(owner)` is called when the memory is no longer needed; `release` may be NULL. */
INGOT_API ingot_status* ingot_engine_load_memory(const void* data, size_t size, void (*release)(void* owner),
                                                 void* owner, const ingot_load_options* options,
                                                 ingot_engine** engine);
/* Atomic; see ingot_file. A file that changed after it was loaded is rejected, INGOT-U211. */
INGOT_API ingot_status* ingot_engine_save(const ingot_engine* engine, const char* path);
INGOT_API ingot_status* ingot_engine_save_memory(const ingot_engine* engine, ingot_text** bytes);
INGOT_API void ingot_engine_free(ingot_engine* engine);
/* An independent engine, which shares all memory with `engine`, including the weights until either is
 * refitted. */
INGOT_API ingot_status* ingot_engine_copy(const ingot_engine* engine, ingot_engine** copy);
/* The same on another GPU, with weights of its own there; memory of the host is shared. */
INGOT_API ingot_status* ingot_engine_copy_to(const ingot_engine* engine, int32_t gpu, ingot_engine** copy);
/* The GPU that the engine runs on; -1 if it is on the host, or cannot run here. */
INGOT_API int32_t ingot_engine_gpu(const ingot_engine* engine);
/* Checks a whole file; the status names the damaged section. */
INGOT_API ingot_status* ingot_verify_file(const char* path);
/* Signs a file with the secret key of a file (Ed25519), after every byte of it was checked. The result, which
 * differs in its header only, replaces `output`, or the file itself if that is NULL. Engines that are saved
 * are not signed. INGOT-U225 for a file without such a key, or one that others may read. */
INGOT_API ingot_status* ingot_sign_file(const char* path, const char* key, const char* output);
/* Writes a new secret key to `path`, and its public key to `path`.pub; neither may exist. `public_key` (may
 * be NULL) receives it in hexadecimal. */
INGOT_API ingot_status* ingot_create_key(const char* path, ingot_text** public_key);
/* Weights of an engine for a GPU, in bytes. Those beyond the budget stay in memory of the host, from which
 * each run copies them to the GPU ahead of their use; results do not change. All are 0 for an engine on the
 * host. */
typedef struct ingot_weight_memory {
  size_t struct_size;
  size_t total;     /* of all weights on the GPU */
  size_t minimum;   /* the smallest budget */
  size_t budget;    /* what is used: resident + ring */
  size_t resident;  /* of weights that stay on the GPU */
  size_t ring;      /* that each context needs for copies of the others */
  size_t available; /* free on the GPU, or taken by weights that stay there */
} ingot_weight_memory;
INGOT_API ingot_status* ingot_engine_weight_memory(const ingot_engine* engine, ingot_weight_memory* memory);
/* "all"; "auto": what is available, less an eighth; "50%" of all; or bytes: "1500000000", "1.5GB", "1.5GiB".
 * A budget below the minimum becomes the minimum. For later runs of all contexts; runs in flight keep theirs.
 * INGOT-U336 if it is none of these. On the host it does nothing. */
INGOT_API ingot_status* ingot_engine_set_weight_budget(ingot_engine* engine, const char* budget);
/* JSON: format, target, key, sections, inputs, outputs, states, steps, kernels, weights, memory plan, nodes.
 */
INGOT_API ingot_status* ingot_engine_inspect(const ingot_engine* engine, ingot_text** json);
INGOT_API ingot_status* ingot_inspect_file(const char* path, ingot_text** json);

/* One tensor input, output or state. Dims are expressions over symbols: "B", "128", "2*S". */
typedef struct ingot_port {
  size_t struct_size;
  const char* name;
  int32_t dtype;
  int32_t rank;
  const char* const* dims;
  const int64_t* min; /* range of each dim; INT64_MAX: no upper bound */
  const int64_t* max;
} ingot_port;
INGOT_API size_t ingot_engine_input_count(const ingot_engine* engine);
INGOT_API size_t ingot_engine_output_count(const ingot_engine* engine);
INGOT_API size_t ingot_engine_state_count(const ingot_engine* engine);
INGOT_API ingot_status* ingot_engine_input(const ingot_engine* engine, size_t index, ingot_port* port);
INGOT_API ingot_status* ingot_engine_output(const ingot_engine* engine, size_t index, ingot_port* port);
INGOT_API ingot_status* ingot_engine_state(const ingot_engine* engine, size_t index, ingot_port* port);
/* Position of the input, output or state of that name; UserError INGOT-U318 lists the existing names. */
INGOT_API ingot_status* ingot_engine_find_input(const ingot_engine* engine, const char* name, size_t* index);
INGOT_API ingot_status* ingot_engine_find_output(const ingot_engine* engine, const char* name, size_t* index);
INGOT_API ingot_status* ingot_engine_find_state(const ingot_engine* engine, const char* name, size_t* index);
/* Strings attached when the engine was built (ingot_build_options.metadata): keys in byte order, NULL past
 * the last; the value of a key, NULL if the engine lacks it. Saving, copying and refitting keep them. */
INGOT_API size_t ingot_engine_metadata_count(const ingot_engine* engine);
INGOT_API const char* ingot_engine_metadata_key(const ingot_engine* engine, size_t index);
INGOT_API const char* ingot_engine_metadata_value(const ingot_engine* engine, const char* key);
/* Position of the flat user input that state `index` is bound to at each call, or -1 if a context owns it. */
INGOT_API int32_t ingot_engine_state_input(const ingot_engine* engine, size_t index);
/* 1 if runs write the memory of tensor input `index`, because the model updates it in place; otherwise 0. */
INGOT_API int32_t ingot_engine_input_is_updated(const ingot_engine* engine, size_t index);
/* JSON of the model's signature: {"argument_names", "input_tree", "output_tree" (torch's pytree specs),
 * "inputs" and "outputs": one object per flat value, {"kind": "tensor"}, {"kind": "size"} (an integer that
 * the tensors determine) or a value that a caller repeats, {"kind": "none" | "bool" | "integer" | "number" |
 * "text", "value"}; "name", "origin", "target"}. */
INGOT_API ingot_status* ingot_engine_signature(const ingot_engine* engine, ingot_text** json);

typedef struct ingot_refit_options {
  size_t struct_size;
  int32_t partial; /* nonzero: weights without a new value keep theirs; 0: they are an error, INGOT-U324 */
  /* If not NULL, the engine may use the values where they are, unchanged, until it calls `release(owner)`,
   * once, also if the refit fails. NULL: it copies what it keeps. */
  void (*release)(void* owner);
  void* owner;
  /* Which parts of sharded weights this rank reads, if their values are whole tensors: "1", or "tp:1,dp:0" if
   * several groups divide them. NULL: the engine's rank if it was built for one, that of the shared groups
   * (ingot_group_share), or that of the environment variable INGOT_RANK; INGOT-U357 if there is none. */
  const char* rank;
} ingot_refit_options;
/* New values of weights by the model's names; `options` may be NULL. Only what depends on them is prepared
 * again. Runs in flight keep the old ones. All or nothing: INGOT-U320 for a name that the model never had,
 * U321 for another dtype or shape, U325 for another value of what is part of the engine. */
INGOT_API ingot_status* ingot_engine_refit(ingot_engine* engine, size_t count, const char* const* names,
                                           const ingot_tensor* values, const ingot_refit_options* options);
/* Takes over the weights of a copy of this engine, which cannot fail: a refit of several engines that is all
 * or nothing. INGOT-U328 if it is not a copy. */
INGOT_API ingot_status* ingot_engine_take_weights(ingot_engine* engine, const ingot_engine* copy);
INGOT_API size_t ingot_engine_weight_count(const ingot_engine* engine); /* of the model */
INGOT_API const char* ingot_engine_weight_name(const ingot_engine* engine, size_t index);
/* 1 if a refit accepts that name: of a weight, or another parameter or buffer of the model; otherwise 0. */
INGOT_API int32_t ingot_engine_knows_tensor(const ingot_engine* engine, const char* name);

/* Tensors of a .safetensors file, or of a .pt2 (ingot_open_model_tensors), by name. The file is mapped and
 * must not change while they are in use. */
typedef struct ingot_tensors ingot_tensors;
INGOT_API ingot_status* ingot_open_tensors(const char* path, ingot_tensors** tensors);
INGOT_API void ingot_tensors_free(ingot_tensors* tensors);
INGOT_API size_t ingot_tensors_count(const ingot_tensors* tensors);
/* They live as long as `tensors`; NULL past the last one. */
INGOT_API const char* ingot_tensors_name(const ingot_tensors* tensors, size_t index);
INGOT_API const ingot_tensor* ingot_tensors_value(const ingot_tensors* tensors, size_t index);

/* ---- Ranks ---- */
/* The connections of one rank to the others of its group, which engines with collectives need. Ranks are
 * processes, or threads of one, on one machine or several; whoever reaches the address can join, so it has to
 * be in a network that is trusted. */
typedef struct ingot_group ingot_group;
/* A port at which rank 0 listens before the ranks meet, so that the others can be told where: with port 0,
 * one that is free. INGOT-U353 if the address ("host:port") is not of this machine, or is taken. */
typedef struct ingot_group_listener ingot_group_listener;
INGOT_API ingot_status* ingot_group_listen(const char* address, ingot_group_listener** listener);
INGOT_API const char* ingot_group_listener_address(const ingot_group_listener* listener); /* NULL for NULL */
INGOT_API void ingot_group_listener_free(ingot_group_listener* listener);
typedef struct ingot_group_options {
  size_t struct_size;
  const char* name;                     /* for messages; the same for all ranks */
  const char* address;                  /* "host:port", at which rank 0 listens */
  int32_t rank, size;                   /* rank: 0 to size - 1 */
  int64_t deadline_ms;                  /* for all ranks to join, and for each collective; 0: 60,000 */
  const ingot_group_listener* listener; /* of rank 0, instead of the address; NULL: it listens at that */
} ingot_group_options;
/* Returns when all ranks have called it. INGOT-U353: contradictory options; INGOT-D350: ranks that did not
 * join within the deadline. When a rank ends, hangs or runs something else, the runs of all fail (INGOT-D350,
 * D351) within the deadline, and the group is unusable from then on (D352). */
INGOT_API ingot_status* ingot_group_join(const ingot_group_options* options, ingot_group** group);
INGOT_API void ingot_group_free(ingot_group* group);          /* contexts that use it keep it */
INGOT_API int32_t ingot_group_rank(const ingot_group* group); /* -1 for NULL */
INGOT_API int32_t ingot_group_size(const ingot_group* group); /* 0 for NULL */
INGOT_API int32_t ingot_group_is_usable(const ingot_group* group);
/* Until ingot_group_end_work, a thread tells the other ranks several times within each deadline that this one
 * is alive: their collectives wait for it, as long as it takes to compile or load something. */
typedef struct ingot_group_work ingot_group_work;
INGOT_API ingot_status* ingot_group_begin_work(const ingot_group* group, ingot_group_work** work);
INGOT_API void ingot_group_end_work(ingot_group_work* work);
/* For contexts that are made from now on and have no group of this name in their options; NULL: no longer.
 * The name "" is for engines with a single group. */
INGOT_API ingot_status* ingot_group_share(const char* name, const ingot_group* group);
/* The groups that the engine's collectives name; NULL past the last one. */
INGOT_API const char* ingot_engine_group_name(const ingot_engine* engine, size_t index);
typedef struct ingot_group_binding {
  const char* name; /* as the engine names it; "": its only one */
  const ingot_group* group;
} ingot_group_binding;

/* ---- Running ---- */
typedef struct ingot_context ingot_context; /* cheap; one per thread */
/* Memory of a context. `allocate` returns `bytes` bytes (more than 0) aligned to `alignment` (64), or NULL on
 * failure (DeviceError INGOT-D303, as for unaligned memory); `release` frees them. Both are called by the
 * thread that creates, uses or frees the context, never by a worker. */
typedef struct ingot_allocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* memory, size_t bytes);
  void* user;
} ingot_allocator;
/* When an index out of range that a kernel on a GPU meets is told (INGOT-U310). LATER: by the next call, or
 * ingot_context_synchronize. SYNC: by the call itself, which waits until its work is done. A call whose
 * stream the caller is capturing does not run, and tells nothing. */
typedef enum ingot_check_indices {
  INGOT_CHECK_INDICES_LATER = 0,
  INGOT_CHECK_INDICES_SYNC = 1
} ingot_check_indices;
typedef struct ingot_context_options {
  size_t struct_size;
  /* Threads of this context's runs, the calling one included; the context then owns the others, so that
   * concurrent contexts do not wait for each other. At most what affinity and quota allow. 0: the threads of
   * the process (ingot_set_threads), which one run uses at a time; a concurrent run uses its own thread
   * alone. Does not affect results. */
  int32_t threads;
  /* For arena, scratch of kernels and routines, copies of inputs and owned states. The struct is read during
   * the call; its `user` must outlive the context. NULL: the system's memory. */
  const ingot_allocator* allocator;
  /* Groups for the engine's collectives. Those that are missing are the shared ones of the process
   * (ingot_group_share) or, for an engine with a single group, the one that the environment variables
   * INGOT_RANK, INGOT_WORLD_SIZE, INGOT_ADDRESS and INGOT_GROUP_DEADLINE (milliseconds) describe. */
  const ingot_group_binding* groups;
  size_t group_count;
  int32_t check_indices; /* ingot_check_indices; on the host the call itself always tells */
  /* Not 0: work for a GPU is enqueued kernel by kernel, and never becomes a CUDA graph. */
  int32_t without_cuda_graphs;
} ingot_context_options;
/* `options` may be NULL. The context keeps the engine alive: the handle may be freed first. */
INGOT_API ingot_status* ingot_context_create_with(ingot_engine* engine, const ingot_context_options* options,
                                                  ingot_context** context);
INGOT_API ingot_status* ingot_context_create(ingot_engine* engine, ingot_context** context);
INGOT_API void ingot_context_free(ingot_context* context);
/* 0 if a group of the context has failed, and its runs can only fail. */
INGOT_API int32_t ingot_context_is_usable(const ingot_context* context);
/* Threads that the next run uses, the calling one included; 0 for NULL. */
INGOT_API int32_t ingot_context_threads(const ingot_context* context);
/* Returns memory for output `index`, 64-byte aligned for best speed, or NULL on failure. */
typedef void* (*ingot_allocate)(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                                size_t bytes);
/* `inputs` are the tensor inputs in order. They are read during the call, in place if they are dense,
 * otherwise from a copy. Outputs are allocated by `allocate` during the call, on the calling thread. After a
 * failed run the context is as usable as before; outputs and states that the model updates may be partly
 * written. */
INGOT_API ingot_status* ingot_context_run(ingot_context* context, size_t count, const ingot_tensor* inputs,
                                          ingot_allocate allocate, void* user);
typedef struct ingot_run_options {
  size_t struct_size;
  ingot_allocate allocate; /* of outputs; not NULL */
  void* user;              /* of `allocate` */
  int64_t deadline_ns; /* nanoseconds of CLOCK_MONOTONIC (Windows: QueryPerformanceCounter); after it the run
                          ends with INGOT-U317; 0: none */
  const int32_t* cancel; /* once nonzero, the run ends with INGOT-U316; any thread may set it; NULL: none */
  /* For engines on a GPU. Nonzero: `allocate` returns memory of the device, and the run may return before the
   * outputs are complete: work enqueued on `stream` afterwards sees them. 0: host memory, complete. */
  int32_t outputs_on_device;
  void* stream; /* CUstream, on which the inputs are ready; 1: the legacy default; NULL: the context's own */
  /* A copy of the context's engine (ingot_engine_copy) on the same GPU, whose weights this run reads:
   * contexts and their memory serve any number of sets of weights. NULL: the engine's own. INGOT-U328 if it
   * is none. */
  const ingot_engine* weights;
} ingot_run_options;
/* The same with options (not NULL). `names[i]` is the name of the input `inputs[i]`; all inputs, in any order
 * (INGOT-U318). NULL: in the engine's order. Deadline and cancellation are checked before each step, so a run
 * overruns by at most one step; the first run of an engine also waits for the verification of its weights. */
INGOT_API ingot_status* ingot_context_run_with(ingot_context* context, size_t count, const char* const* names,
                                               const ingot_tensor* inputs, const ingot_run_options* options);
/* The same into memory of the library, for callers that cannot be called back safely during a run. `outputs`
 * has ingot_engine_output_count elements; each receives a dense tensor in host memory, aligned to 64 bytes,
 * which the caller frees, in any order, also after the context and the engine. `options` may be NULL; its
 * `allocate` is NULL and its outputs_on_device 0 (INGOT-U002). After a failure all elements are NULL. */
INGOT_API ingot_status* ingot_context_run_owned(ingot_context* context, size_t count,
                                                const char* const* names, const ingot_tensor* inputs,
                                                const ingot_run_options* options, ingot_tensor** outputs);
INGOT_API void ingot_tensor_free(ingot_tensor* tensor); /* of ingot_context_run_owned, and of no other */
/* Waits for everything that runs have enqueued; reports an index out of range in a kernel on the device,
 * unless the next run does (INGOT-U310). */
INGOT_API ingot_status* ingot_context_synchronize(ingot_context* context);
/* Sizes of all outputs for these inputs, without running: `shapes` receives the dims of output 0, 1, ... in
 * sequence; `capacity` is its length and `length` the number of dims. */
INGOT_API ingot_status* ingot_context_output_shapes(ingot_context* context, size_t count,
                                                    const ingot_tensor* inputs, int64_t* shapes,
                                                    size_t capacity, size_t* length);
INGOT_API ingot_status* ingot_context_bind_state(ingot_context* context, size_t index, void* data);
INGOT_API ingot_status* ingot_context_reset_states(ingot_context* context);
/* Copies the values of another context, of the same engine or a copy of it, into the states that `context`
 * owns. */
INGOT_API ingot_status* ingot_context_copy_states(ingot_context* context, const ingot_context* from);
/* Exchanges the states that the contexts own, which keep their values and addresses. `from` may be a context
 * of another engine with equal states: the same model, built with other options. Both have the same
 * allocator. */
INGOT_API ingot_status* ingot_context_take_states(ingot_context* context, ingot_context* from);
typedef struct ingot_memory {
  size_t struct_size;
  size_t arena, states, scratch, weights; /* bytes */
  size_t cached_plans;
} ingot_memory;
INGOT_API ingot_status* ingot_context_memory(const ingot_context* context, ingot_memory* memory);

/* Receives a value that step `step` of the main program has computed, before the next step runs: `name` is
 * its name in the compiled graph, mostly that of the model's node; `value` is row-major in host memory and
 * lives during the call. */
typedef void (*ingot_observe)(void* user, size_t step, const char* name, const ingot_tensor* value);
/* Shows the values of later runs, which are slower but compute the same with the same kernels; NULL: no
 * longer. Values inside of fused kernels are not stored, and those of nested programs and in blocked layouts
 * are not shown. */
INGOT_API ingot_status* ingot_context_set_observer(ingot_context* context, ingot_observe observe, void* user);

/* Starts timing each step of later runs (on != 0; discards earlier times), or stops. Off by default: then
 * nothing is measured. */
INGOT_API ingot_status* ingot_context_set_profiling(ingot_context* context, int32_t on);
/* JSON of the measurements since the sizes of the inputs last changed: {"runs", "threads", "sizes",
 * "median_ns" (of a run), "roof", "steps": [{"name", "kind", "kernel", "operators", "median_ns", "min_ns",
 * "share" (of all steps, 0 to 1), "operations", "bytes", "roof_share" (the minimum time for that work on this
 * machine divided by the measured time), "start_ns", "last_ns" (of the last run)}]}. Measures the machine's
 * limits for some milliseconds. INGOT-U340 if nothing has run. */
INGOT_API ingot_status* ingot_context_profile(ingot_context* context, ingot_text** json);

/* Threads of the process, shared by contexts without their own, the caller included; 0: what affinity and
 * quota allow. Not during a run. */
INGOT_API ingot_status* ingot_set_threads(int32_t threads);
INGOT_API int32_t ingot_get_threads(void);
/* How many GPUs the driver shows; 0 without one. */
INGOT_API int32_t ingot_gpu_count(void);
/* Microseconds that idle workers spin before they sleep, for the process's threads and for contexts created
 * afterwards; 0: they sleep at once. */
INGOT_API ingot_status* ingot_set_spin(int32_t microseconds);

/* ---- Metrics ---- */
/* Counters and memory of engines as text for Prometheus (exposition format 0.0.4, UTF-8), for any server to
 * expose: calls, errors by code, plans, bytes of contexts and weights, each with the label engine="NAME"; and
 * what builds of the process found in its cache. `names[i]` is the name of `engines[i]`, different for each
 * (INGOT-U002). Counts are those of runs through contexts of that engine since it was loaded, including
 * contexts that were freed; a forked child goes on from its parent's. Threads may run meanwhile. */
INGOT_API ingot_status* ingot_metrics_text(size_t count, const ingot_engine* const* engines,
                                           const char* const* names, ingot_text** text);

/* ---- Messages ---- */
typedef enum ingot_log_level {
  INGOT_LOG_OFF = 0,
  INGOT_LOG_WARNING = 1, /* something differs from what was asked: fewer threads, plans that are not cached */
  INGOT_LOG_INFO = 2     /* opened engines, and the cost of each new shape */
} ingot_log_level;
/* `message` is one line without line end, valid during the call. Called by the thread that the message is
 * about; it may use this API, and must not throw. */
typedef void (*ingot_log)(void* user, int32_t level, const char* message);
/* Passes messages of the process up to `level` to `log`; calls in flight may still use the previous one.
 * NULL, the initial state: to nobody or, if the environment variable INGOT_LOG is "warning" or "info", to
 * stderr. Errors are not logged: they are returned. */
INGOT_API ingot_status* ingot_set_logger(ingot_log log, void* user, int32_t level);

#ifdef __cplusplus
}
#endif
#endif /* INGOT_INGOT_H */
