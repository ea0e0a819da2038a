// SPDX-License-Identifier: Apache-2.0
// An engine opened for commands that run it, with its inputs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/array_file.h"
#include "cli/commands.h"
#include "cli/random_array.h"

namespace ingot::cli {

using EngineHandle = std::unique_ptr<ingot_engine, decltype(&ingot_engine_free)>;
EngineHandle open_engine(const RunCommand& command);

// A value that a step of the main program stored; it lives during the call.
using SeeValue = std::function<void(size_t step, const ingot_tensor& value)>;

class Session {
 public:
  explicit Session(const RunCommand& command);  // opens the engine, reads or generates the inputs
  // Reads or generates the inputs of an open engine.
  Session(EngineHandle engine, const RunCommand& command);
  // The inputs of another session, by name or, if the names differ, by position.
  Session(EngineHandle engine, const std::vector<Array>& inputs);

  // Runs once. The outputs stay valid until the next run.
  const std::vector<Array>& run();
  // The same, slower. Shows the values in the order in which they are computed.
  const std::vector<Array>& run(const SeeValue& see);
  const std::vector<Array>& inputs() const { return inputs_; }
  // The sizes of inputs that may have others, as --shapes takes them: "input_ids:1x128"; "" if there are
  // none.
  std::string chosen_shapes() const;
  void set_profiling();         // times each step of later runs
  std::string profile();        // JSON, see ingot_context_profile
  std::string inspect() const;  // JSON of the engine
  bool is_on_device() const;    // the engine runs on a GPU

 private:
  explicit Session(EngineHandle engine, bool without_graphs = false);  // without inputs
  size_t find_port(const std::string& name, const std::string& origin) const;
  void take_input(Array array, const std::string& origin);
  void read_inputs(const RunCommand& command);
  void read_shapes(const RunCommand& command);
  KnownSizes known_sizes() const;
  void make_missing_inputs(uint64_t seed);
  void check_sizes();
  std::vector<ingot_tensor> views();

  EngineHandle engine_;
  std::unique_ptr<ingot_context, decltype(&ingot_context_free)> context_{nullptr, &ingot_context_free};
  std::vector<ingot_port> ports_;
  std::vector<Array> inputs_;  // one per port; dtype 0: not given
  std::vector<Array> outputs_;
};

}  // namespace ingot::cli
