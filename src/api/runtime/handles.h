// SPDX-License-Identifier: Apache-2.0
// The opaque types of ingot.h and build.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/build.h"
#include "ranks/group.h"
#include "ranks/signs_of_life.h"
#include "runtime/context.h"
#include "runtime/step_observer.h"

// The texts are zero-terminated and in `storage`; if that is null, the status and its texts are constants.
struct ingot_status {
  ingot_error_kind kind;
  const char *code, *message, *node, *source, *advice, *text;
  char* storage;
};

struct ingot_group {
  std::shared_ptr<ingot::core::Communicator> group;
};

struct ingot_group_listener {
  std::shared_ptr<ingot::core::GroupListener> listener;
};

struct ingot_group_work {
  ingot::core::SignsOfLife signs;
};

struct ingot_text {
  std::string text;
};

namespace ingot::core::api {

// A port in the form that ingot_port points to.
struct PortTexts {
  PortTexts(const Port& port, const SymbolTable& symbols);

  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::string> dims;
  std::vector<const char*> dim_pointers;
  std::vector<int64_t> min, max;
};

}  // namespace ingot::core::api

struct ingot_engine {
  explicit ingot_engine(std::shared_ptr<ingot::core::Engine> loaded);
  // An engine for another machine: it can be saved and inspected, not run.
  explicit ingot_engine(std::shared_ptr<const ingot::core::EngineData> content);

  std::shared_ptr<const ingot::core::EngineData> data;
  std::shared_ptr<ingot::core::Engine> engine;  // null if this machine cannot run it
  std::vector<ingot::core::api::PortTexts> inputs, outputs, states;
  std::vector<bool> updated;        // per input: whether runs write its memory
  std::vector<std::string> groups;  // of ranks, that it names
  // The files of the model that weights are still mapped from, if any.
  std::vector<std::weak_ptr<const ingot::core::MappedFile>> model;
};

struct ingot_context {
  ingot_context(std::shared_ptr<ingot::core::Engine> engine, const ingot::core::ContextOptions& options);

  ingot::core::Context context;
  ingot::core::ContextCounters& counters;  // of `context`
  std::vector<std::string> inputs;         // their names, in order
  ingot_observe observe = nullptr;         // called by `observer`
  void* observe_user = nullptr;
  ingot::core::StepObserver observer{};
  // For the current run; kept, so that runs do not allocate.
  std::vector<ingot::core::Argument> arguments;
  std::vector<bool> given;  // per input, if inputs are passed by name
};

namespace ingot::core::api {

// The engine of a handle; throws like loading if this machine cannot run it (UserError INGOT-U220).
const std::shared_ptr<Engine>& runnable(const ingot_engine& handle);

// Bytes of the weights that the engine's runs read, in memory or mapped: of copies too.
size_t held_bytes(const Engine& engine);

// UserError INGOT-U211 if the model's file, which weights of the engine are mapped from, has changed: it has
// no checksums to compare.
void require_unchanged_model(const ingot_engine& handle);

// Writes the current engine, whole or not at all, as `write_engine` and FileWriter do.
void save(const ingot_engine& handle, const char* path, const WriteWatch& watch = {});

ingot_text* make_text(std::string text);

}  // namespace ingot::core::api
