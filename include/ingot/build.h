/* SPDX-License-Identifier: Apache-2.0 */
/* The C API of Ingot: building engines, and the caches of what builds made. The conventions are those of
 * ingot.h. Caches are in libingot_runtime, the rest in libingot. */
#ifndef INGOT_BUILD_H
#define INGOT_BUILD_H

#include "ingot/ingot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Caches ---- */
/* What builds made is found again by later builds: by equal kernels of other models, too. The process has one
 * cache; a session has its own, which is freed with it. */
typedef struct ingot_session ingot_session;
typedef struct ingot_session_options {
  size_t struct_size;
  uint64_t cache_bytes; /* the least recently used entries go when there are more; 0: nothing is kept */
} ingot_session_options;
INGOT_API ingot_status* ingot_session_create(const ingot_session_options* options, ingot_session** session);
INGOT_API void ingot_session_free(ingot_session* session);
/* JSON of a session's cache, or with NULL of the process's: {"made", "from_memory", "from_disk",
 * "from_tiers", "from_other_threads": since it exists, "entries", "compressed", "bytes", "capacity",
 * "evicted": of memory, "folder": on disk, "waiting": entries that are yet to be written in the background}.
 */
INGOT_API ingot_status* ingot_cache_stats(const ingot_session* session, ingot_text** json);
INGOT_API ingot_status* ingot_cache_clear(ingot_session* session); /* forgets the entries; NULL as above */
/* Waits for entries that are written in the background (prepared weights, and those of builds whose
 * cache_write_policy says so), at most so many milliseconds. 1 if none waits any more, otherwise 0. A process
 * that ends earlier loses them, and nothing else. */
INGOT_API int32_t ingot_cache_wait(int64_t milliseconds);

/* A cache's entries on disk, for tools. `folder` may be NULL: that of the process. UserError INGOT-U022 if it
 * cannot be used. An entry's key is the digest of its text, in hexadecimal. */
/* JSON: {"folder", "bytes", "limit", "entries": [{"key", "bytes", "used": seconds since 1970}]}, the least
 * recently used first. */
INGOT_API ingot_status* ingot_cache_list(const char* folder, ingot_text** json);
/* JSON: {"key", "kind", "bytes", "text": everything that decides the entry}; `key` may be its first digits.
 * UserError INGOT-U023 if no entry, or more than one, has it. */
INGOT_API ingot_status* ingot_cache_describe(const char* folder, const char* key, ingot_text** json);
/* Checks every byte. JSON: {"entries": how many, "damaged": [{"key", "reason"}]}; damaged ones are removed.
 */
INGOT_API ingot_status* ingot_cache_verify(const char* folder, ingot_text** json);
/* Removes the least recently used entries until `bytes` are left at most (0: all), and what killed processes
 * left. */
INGOT_API ingot_status* ingot_cache_collect(const char* folder, uint64_t bytes);
/* All entries in one file, for machines that build the same models: kernels are machine code, so add only
 * what you trust. Adding checks all of them first, INGOT-U024. JSON: {"entries": how many, "bytes"}. */
INGOT_API ingot_status* ingot_cache_bundle(const char* folder, const char* path, ingot_text** json);
INGOT_API ingot_status* ingot_cache_unbundle(const char* folder, const char* path, ingot_text** json);

/* A store of entries that the caller provides, asked after memory and disk. Keys are 64 hexadecimal digits.
 * What it returns is checked like a file on disk. Threads may call both at once. */
typedef void (*ingot_receive)(void* receiver, const void* data, size_t size);
typedef struct ingot_cache_store {
  size_t struct_size;
  void* user;
  /* Passes what was saved under `key` to `receive`, or does not call it if there is nothing. Nonzero if it
   * failed, after it passed the reason to `receive`. */
  int32_t (*load)(void* user, const char* key, ingot_receive receive, void* receiver);
  /* Nonzero if it failed, likewise. */
  int32_t (*save)(void* user, const char* key, const void* data, size_t size, ingot_receive receive,
                  void* receiver);
} ingot_cache_store;

/* ---- Building ---- */
typedef struct ingot_option {
  const char* name;
  const char* value;
} ingot_option;
typedef struct ingot_option_info {
  size_t struct_size;
  const char *name, *type, *default_value, *summary;
} ingot_option_info;
INGOT_API size_t ingot_option_count(void);
INGOT_API ingot_status* ingot_option_describe(size_t index, ingot_option_info* info);
/* Returns 0 to cancel the build. `remaining_seconds` is negative while unknown. */
typedef int32_t (*ingot_progress)(void* user, const char* phase, size_t done, size_t total,
                                  double remaining_seconds);
/* For builds beside runs of the same process, which would disturb the timing of tactics. Called before each
 * timing with a nonzero `waits`, and returns once no run is under way; called with 0 during and after it, and
 * returns at once. Returns how many runs have begun so far: a timing during which one began is discarded, and
 * repeated. Negative: cancels the build. `user` is that of `progress`. */
typedef int64_t (*ingot_quiet)(void* user, int32_t waits);
typedef struct ingot_build_options {
  size_t struct_size;
  const ingot_option* options;
  size_t option_count;
  ingot_progress progress; /* may be NULL */
  void* user;
  const ingot_option* metadata; /* keys and values that the engine stores (INGOT-U021); not part of its key */
  size_t metadata_count;
  /* Where the engine is written, atomically, as the build's last phase; NULL: nowhere. */
  const char* output;
  ingot_session* session; /* whose cache the build uses; NULL: that of the process. Outlives the build */
  const ingot_cache_store* store; /* may be NULL; outlives the build */
  ingot_quiet quiet;              /* may be NULL: nothing else runs */
} ingot_build_options;
/* Rejects what every build would reject for these options: names, values, passes, backends; with a builder
 * (may be NULL) also `shapes` that do not match its program's inputs. */
typedef struct ingot_builder ingot_builder;
INGOT_API ingot_status* ingot_check_options(const ingot_builder* builder, const ingot_build_options* options);
/* A .pt2 file of torch.export, torch 2.11 to 2.15. `report` (may be NULL) receives JSON: phases, whose
 * seconds add up to the time of the call, passes with their rewrites, kernels, memory plan. */
INGOT_API ingot_status* ingot_build_pt2(const char* path, const ingot_build_options* options,
                                        ingot_engine** engine, ingot_text** report);
INGOT_API ingot_status* ingot_build_pt2_memory(const void* data, size_t size,
                                               const ingot_build_options* options, ingot_engine** engine,
                                               ingot_text** report);
/* The same for a model file of any kind, by its content: a .pt2, or an ONNX model of opset 13 to 23, whose
 * values may be in other files of its folder. Inputs and outputs have the names of the ONNX graph's. */
INGOT_API ingot_status* ingot_build_model(const char* path, const ingot_build_options* options,
                                          ingot_engine** engine, ingot_text** report);
/* An ONNX model in memory. `folder` (may be NULL): where values in other files are. */
INGOT_API ingot_status* ingot_build_onnx_memory(const void* data, size_t size, const char* folder,
                                                const ingot_build_options* options, ingot_engine** engine,
                                                ingot_text** report);
/* 1 if Ingot has that operator of ONNX ("Gemm"), otherwise 0. A node may still ask for what is not supported.
 */
INGOT_API int32_t ingot_imports_onnx_operator(const char* name);
/* Judges what an engine of a search computes; the engine is the callee's, who frees it. 0: right, 1: wrong;
 * -1 ends the search (INGOT-U010). */
typedef int32_t (*ingot_judge)(void* user, ingot_engine* engine);
/* Finds the rewrite of a pass that makes a result wrong, by about log2(passes) + log2(rewrites of one) builds
 * with these options, of which bisect_passes limits the search and `output` has no effect. The first engine
 * is that without optional passes: it may be the reference for the others. `report` receives JSON: "outcome"
 * ("right": with all passes; "wrong_before_passes"; "rewrite"), "builds" (how many), and of a rewrite "pass",
 * "rule", "node", "op", "source", "bisect_passes" (of the first build that is wrong), "disable_passes" (the
 * entry that leaves the node as it is), "is_right_without" (whether all other passes give a right result).
 * INGOT-U032 if judgements contradict each other. */
INGOT_API ingot_status* ingot_bisect_pt2(const char* path, const ingot_build_options* options,
                                         ingot_judge judge, void* user, ingot_text** report);
/* One HTML file that shows how a model was compiled and where it runs, and loads nothing from elsewhere.
 * `json` are its data: {"title" (by default the first engine's name), "engines": [{"inspect": of
 * ingot_engine_inspect, "build": the report of its build, "profile": of ingot_context_profile}]} and, of a
 * model that torch runs in part, {"segments": in execution order [{"backend" ("torch", or that of the next
 * engine), "nodes": [{"name", "op", "source", "reason" (why torch runs it), "code" (of the reason), "slow"
 * (why it is slow in an engine), "precision"}], "torch_ms", "engine_ms"}], "breaks": [texts]}. What is not
 * known is null or left out. INGOT-U039 if it is anything else. */
INGOT_API ingot_status* ingot_report_page(const char* json, ingot_text** html);
/* An ONNX model (the bytes of its file) that shows an engine in viewers such as Netron: docs/onnx.md. Its
 * operators are Ingot's, so no runtime of ONNX runs it. `stage` (may be NULL): "steps", what the engine runs,
 * or "imported", the graph that it was built from, as its key has it: without names of nodes and weights.
 * Equal engines give equal bytes. */
INGOT_API ingot_status* ingot_engine_export_onnx(const ingot_engine* engine, const char* stage,
                                                 ingot_text** onnx);
/* The same of an engine file, which takes no options; or of a model of any kind: "imported", its graph before
 * all passes, or "optimized" (if `stage` is NULL), its graph after the passes of a build with these options
 * (may be NULL), of which `progress` and what follows it has no effect. INGOT-U002 for other stages. */
INGOT_API ingot_status* ingot_export_onnx(const char* path, const char* stage,
                                          const ingot_build_options* options, ingot_text** onnx);
/* The program of a .pt2 file, or of a model file of any kind, as text. */
INGOT_API ingot_status* ingot_inspect_model(const char* path, ingot_text** text);
INGOT_API ingot_status* ingot_inspect_pt2(const char* path, ingot_text** text);

/* A program of ATen calls, filled by a front end: one call per node. */
INGOT_API ingot_status* ingot_builder_create(const char* origin, ingot_builder** builder);
INGOT_API void ingot_builder_free(ingot_builder* builder);
/* typical < 0: unknown. */
INGOT_API ingot_status* ingot_builder_symbol(ingot_builder* builder, const char* name, int64_t min,
                                             int64_t max, int64_t typical);
typedef enum ingot_value_kind {
  INGOT_VALUE_TENSOR = 0,
  INGOT_VALUE_INTEGER = 1,
  INGOT_VALUE_FLOAT = 2,
  INGOT_VALUE_BOOL = 3,
  INGOT_VALUE_OTHER = 4
} ingot_value_kind;
/* `dims` and `strides` are dim expressions ("S", "3", "2*S + 1", "floordiv(S, 2)", "max(A, B)"); strides may
 * be NULL. For INGOT_VALUE_INTEGER, rank is 1 and dims[0] the value's expression, or rank is 0. Ids count up
 * from 0 in each graph. */
typedef struct ingot_value {
  size_t struct_size;
  const char* name;
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  const char* const* dims;
  const char* const* strides;
} ingot_value;
INGOT_API ingot_status* ingot_builder_value(ingot_builder* builder, const ingot_value* value, uint32_t* id);

/* Arguments in prefix order: a list's `count` children follow it, and the two parts of a complex number. */
typedef enum ingot_argument_kind {
  INGOT_ARGUMENT_NONE = 0,
  INGOT_ARGUMENT_VALUE = 1 /* integer: value id */,
  INGOT_ARGUMENT_BOOL = 2,
  INGOT_ARGUMENT_INTEGER = 3,
  INGOT_ARGUMENT_FLOAT = 4,
  INGOT_ARGUMENT_STRING = 5,
  INGOT_ARGUMENT_DTYPE = 6 /* integer */,
  INGOT_ARGUMENT_DEVICE = 7 /* text */,
  INGOT_ARGUMENT_LIST = 8,
  INGOT_ARGUMENT_GRAPH = 9 /* integer: id given by ingot_builder_end_graph */,
  INGOT_ARGUMENT_COMPLEX = 10 /* followed by its real and imaginary part, each INGOT_ARGUMENT_FLOAT */
} ingot_argument_kind;
typedef struct ingot_argument {
  const char* name; /* the schema's name; "" for positional ones, which are named by the schema */
  int32_t kind;
  int32_t count;
  int64_t integer;
  double number;
  const char* text;
} ingot_argument;

typedef enum ingot_input_kind {
  INGOT_INPUT_USER = 0,
  INGOT_INPUT_PARAMETER = 1,
  INGOT_INPUT_BUFFER = 2,
  INGOT_INPUT_CONSTANT = 3
} ingot_input_kind;
typedef struct ingot_input {
  size_t struct_size;
  uint32_t value;
  int32_t kind;
  const char* name;             /* argument name, or fully qualified name of the weight */
  const ingot_tensor* data;     /* weights, buffers, constants; NULL for user inputs */
  void (*release)(void* owner); /* called when `data` is no longer needed; may be NULL */
  void* owner;
  const ingot_argument* literal; /* the value of a user input that is not a tensor; otherwise NULL */
  int32_t is_unsaved; /* nonzero: a buffer that state dicts leave out; a refit needs no new value of it */
} ingot_input;
INGOT_API ingot_status* ingot_builder_input(ingot_builder* builder, const ingot_input* input);

/* Of a .pt2 file, its parameters, buffers and constants, whatever its program is; or of a .safetensors file.
 */
INGOT_API ingot_status* ingot_open_model_tensors(const char* path, ingot_tensors** tensors);
/* A name of the model's state dict that no input has, so that a refit accepts it. `tied_to`: the input that
 * holds the same tensor; NULL: none, as the program does not read it. */
INGOT_API ingot_status* ingot_builder_other_name(ingot_builder* builder, const char* name,
                                                 const char* tied_to);

typedef struct ingot_node {
  size_t struct_size;
  const char* target; /* "aten.linear.default" */
  const char* name;
  const ingot_argument* arguments; /* all of them, flattened */
  size_t argument_count;           /* entries, children included */
  const int64_t* outputs;          /* value ids; -1: unused or undefined */
  size_t output_count;
  int32_t returns_list;
  const char* file; /* the line of the user's model, NULL if unknown */
  int32_t line;
  const char* function;
  const char* module_path;
} ingot_node;
INGOT_API ingot_status* ingot_builder_node(ingot_builder* builder, const ingot_node* node);
typedef enum ingot_output_kind {
  INGOT_OUTPUT_USER = 0,
  INGOT_OUTPUT_BUFFER_MUTATION = 1,
  INGOT_OUTPUT_INPUT_MUTATION = 2
} ingot_output_kind;
/* `target`: name of the mutated input, otherwise NULL. */
INGOT_API ingot_status* ingot_builder_output(ingot_builder* builder, const ingot_argument* value,
                                             int32_t kind, const char* target);
/* Makes the integers among the inputs arguments of each call, and the numbers among the outputs results:
 * tensors of i64, f64 or bool without dims. Called after the last input. Otherwise the sizes of the tensors
 * determine these integers, and an output that is a number is an error, INGOT-N521. */
INGOT_API ingot_status* ingot_builder_pass_numbers(ingot_builder* builder);
/* Nested graphs, in their own scope of value ids. */
INGOT_API ingot_status* ingot_builder_begin_graph(ingot_builder* builder);
INGOT_API ingot_status* ingot_builder_end_graph(ingot_builder* builder, int64_t* id);
INGOT_API ingot_status* ingot_builder_signature(ingot_builder* builder, const char* input_tree,
                                                const char* output_tree, size_t argument_count,
                                                const char* const* argument_names);
/* A condition on sizes under which the program is equivalent to the model, in Python as torch writes it:
 * "(L['x'].size()[0] % 2) == 0", or over symbols. Engines reject other sizes by name. One with a comment adds
 * no condition, but tells who asks for an equal one: "s0 % 2 == 0  # user model.py:7 in forward", "# torch"
 * while it traced an operator, "# layout" to determine a tensor's memory layout. */
INGOT_API ingot_status* ingot_builder_guard(ingot_builder* builder, const char* condition);
/* JSON list of the guards to check: [{"guard": as given, "condition": in names of inputs, "source", "reason":
 * why no engine can check it, or ""}]. */
INGOT_API ingot_status* ingot_builder_guards(ingot_builder* builder, ingot_text** json);
/* 1 if calls of that ATen overload ("aten.linear.default") are best left whole for Ingot, otherwise 0: torch
 * may decompose them. A call may still be unsupported. */
INGOT_API int32_t ingot_imports_operator(const char* target);
/* JSON list of the nodes that Ingot cannot run: [{"node": index, "target", "reason", "source"}]. */
INGOT_API ingot_status* ingot_builder_unsupported(ingot_builder* builder, ingot_text** json);
/* The same for a build with these options: with random_seed, an engine draws random numbers. */
INGOT_API ingot_status* ingot_builder_unsupported_with(ingot_builder* builder,
                                                       const ingot_build_options* options, ingot_text** json);
/* The builder keeps its program; it may be built again with other options. */
/* The nodes that an engine would run, but slowly: [{"node", "op", "source", "reason", "own_ns", "peer_ns"}],
 * by the passes before code generation. "node" is the name that was given; "op" is one of Ingot's. Fails as a
 * build would. */
INGOT_API ingot_status* ingot_builder_slow(ingot_builder* builder, const ingot_build_options* options,
                                           ingot_text** json);
INGOT_API ingot_status* ingot_builder_build(ingot_builder* builder, const ingot_build_options* options,
                                            ingot_engine** engine, ingot_text** report);
INGOT_API ingot_status* ingot_builder_text(ingot_builder* builder, ingot_text** text);

#ifdef __cplusplus
}
#endif
#endif /* INGOT_BUILD_H */
