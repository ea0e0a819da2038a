// SPDX-License-Identifier: Apache-2.0
// The tensors that a graph of torch.compile was called with as its weights, and an engine that holds their
// values.
//
// Modules of one class share a compiled graph: layers that are compiled one by one, replicas with other
// weights.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "session.h"
#include "torch_tensors.h"
#include "turn.h"
#include "weight_glance.h"
#include "weight_watch.h"

namespace ingot::python {

class BoundWeights {
 public:
  // `rows`: (name, tensor, position among a call's arguments or -1) of weights that `engine` has the values
  // of; watched as `check` says, with the help of `tensors` (none: each look goes through Python).
  // `contents`: a DeviceContents that looks at the bytes of weights on GPUs, or None.
  BoundWeights(nb::object engine, const nb::list& rows, WeightCheck check,
               std::optional<TorchTensors> tensors, nb::object contents);
  // The same tensors, as `engine`, a copy, has them.
  BoundWeights(const BoundWeights& other, nb::object engine);

  size_t count() const { return weights_.size(); }
  int position(size_t index) const { return weights_[index].position(); }
  nb::handle engine() const { return engine_; }
  Session& session() const { return *session_; }

  // The index of the first weight that may have changed; `count()` if there is none.
  size_t find_changed(const Arguments& arguments) const { return glances_.find_changed(0, arguments.data()); }
  // Whether the arguments from weight `first` on are the tensors that were seen last.
  bool are_same(const Arguments& arguments, size_t first = 0) const;
  // Whether anybody else refers to each of the tensors: else their module is gone, or has other ones.
  bool are_used_elsewhere() const;

  // Watches the tensors of these arguments from now on: the next call with them refits the engine, and no
  // call with the old ones finds them here. Returns the old ones, whose end may run Python code.
  std::vector<nb::object> watch(const Arguments& arguments);
  // Refits the engine with what has changed, from weight `first` on. If that fails, the next call tries
  // again. Other threads wait until it is done.
  void refit_changed(const Arguments& arguments, size_t first);
  // The next call refits all weights: the engine has others than the last call saw.
  void forget();

 private:
  std::vector<size_t> refit_seen(const Arguments& arguments, size_t first);
  nb::object take_changed(const Arguments& arguments, size_t first, std::vector<size_t>& seen,
                          std::vector<size_t>& changed);
  void forget_one(size_t index);
  void remember(size_t index);

  nb::object engine_;  // keeps session_ alive
  Session* session_;
  WeightCheck check_;
  WeightGlances glances_;
  nb::object contents_;
  std::vector<WatchedWeight> weights_;
  Turn turn_;
};

}  // namespace ingot::python
