// SPDX-License-Identifier: Apache-2.0
// An engine opened for `run` and `bench`, with its inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/array_file.h"
#include "cli/commands.h"
#include "cli/random_array.h"

namespace ingot::cli {

class Session {
 public:
  explicit Session(const RunCommand& command);  // opens the engine, reads or generates the inputs

  // Runs once. The outputs stay valid until the next run.
  const std::vector<Array>& run();
  const std::vector<Array>& inputs() const { return inputs_; }
  // The sizes of inputs that may have others, as --shapes takes them: "input_ids:1x128"; "" if there are
  // none.
  std::string chosen_shapes() const;
  void set_profiling();   // times each step of later runs
  std::string profile();  // JSON, see ingot_context_profile

 private:
  size_t find_port(const std::string& name, const std::string& origin) const;
  void take_input(Array array, const std::string& origin);
  void read_inputs(const RunCommand& command);
  void read_shapes(const RunCommand& command);
  KnownSizes known_sizes() const;
  void make_missing_inputs(uint64_t seed);
  void check_sizes();
  std::vector<ingot_tensor> views();

  std::unique_ptr<ingot_engine, decltype(&ingot_engine_free)> engine_{nullptr, &ingot_engine_free};
  std::unique_ptr<ingot_context, decltype(&ingot_context_free)> context_{nullptr, &ingot_context_free};
  std::vector<ingot_port> ports_;
  std::vector<Array> inputs_;  // one per port; dtype 0: not given
  std::vector<Array> outputs_;
};

}  // namespace ingot::cli
