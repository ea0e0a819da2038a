// SPDX-License-Identifier: Apache-2.0
#include "bound_weights.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>

#include "gil.h"

namespace ingot::python {

BoundWeights::BoundWeights(nb::object engine, const nb::list& rows, WeightCheck check,
                           std::optional<TorchTensors> tensors, nb::object contents)
    : engine_(std::move(engine)),
      session_(nb::cast<Session*>(engine_)),
      check_(check),
      glances_(std::move(tensors), pairs_of(check)),
      contents_(std::move(contents)) {
  for (const nb::handle row : rows) {
    const nb::tuple weight = nb::cast<nb::tuple>(row);
    weights_.emplace_back(nb::cast<std::string>(weight[0]), nb::borrow(weight[1]), nb::cast<int>(weight[2]),
                          check_, !contents_.is_none());
    glances_.add(weights_.back().position());
    remember(weights_.size() - 1);
  }
}

BoundWeights::BoundWeights(const BoundWeights& other, nb::object engine)
    : engine_(std::move(engine)),
      session_(nb::cast<Session*>(engine_)),
      check_(other.check_),
      glances_(other.glances_),
      contents_(other.contents_),
      weights_(other.weights_) {
  if (!contents_.is_none()) contents_ = contents_.attr("copy")();
}

bool BoundWeights::are_same(const Arguments& arguments, size_t first) const {
  return std::all_of(weights_.begin() + static_cast<ptrdiff_t>(first), weights_.end(),
                     [&](const WatchedWeight& weight) {
                       return weight.position() < 0 || arguments[weight.position()].is(weight.tensor());
                     });
}

bool BoundWeights::are_used_elsewhere() const {
  return std::ranges::all_of(weights_, [](const WatchedWeight& weight) {
    return weight.position() < 0 || Py_REFCNT(weight.tensor().ptr()) > 1;
  });
}

std::vector<nb::object> BoundWeights::watch(const Arguments& arguments) {
  std::vector<nb::object> old;
  old.reserve(weights_.size());
  for (size_t i = 0; i < weights_.size(); ++i) {
    const int position = weights_[i].position();
    if (position < 0 || arguments[position].is(weights_[i].tensor())) continue;
    old.push_back(weights_[i].watch(arguments[position]));
    glances_.forget(i);
  }
  return old;
}

void BoundWeights::forget() {
  for (size_t i = 0; i < weights_.size(); ++i) forget_one(i);
}

// First what torch and the host's memory tell, so that the look at a GPU's has the addresses of now.
void BoundWeights::refit_changed(const Arguments& arguments, size_t first) {
  if (first == weights_.size() && contents_.is_none()) return;
  const auto turn = turn_.take();
  const std::vector<size_t> seen = refit_seen(arguments, first);
  if (contents_.is_none()) return;
  nb::list bound;
  for (const size_t i : seen) bound.append(nb::make_tuple(i, weights_[i].tensor()));
  const nb::object others = ask_gil([&] { return contents_.attr("changed")(bound); });
  if (others.is_none()) return;
  for (const nb::handle each : others) forget_one(nb::cast<size_t>(each));
  refit_seen(arguments, 0);
}

// The indices of the weights that changed.
std::vector<size_t> BoundWeights::refit_seen(const Arguments& arguments, size_t first) {
  std::vector<size_t> seen, changed;
  try {
    const nb::object values = take_changed(arguments, first, seen, changed);
    // As when the engine was built, it has the weights where the model has them.
    if (values.is_valid())
      ask_gil([&] { engine_.attr("refit")(values, nb::arg("partial") = true, nb::arg("keep") = true); });
  } catch (...) {
    for (const size_t i : changed) forget_one(i);
    throw;
  }
  for (const size_t i : seen) remember(i);  // other threads' calls need no longer wait
  return changed;
}

// A dict of the weights that differ, once there is one. `seen`: the indices of those that were looked at.
nb::object BoundWeights::take_changed(const Arguments& arguments, size_t first, std::vector<size_t>& seen,
                                      std::vector<size_t>& changed) {
  nb::object values;
  for (size_t i = first; (i = glances_.find_changed(i, arguments.data())) < weights_.size(); ++i) {
    const int position = weights_[i].position();
    const nb::handle now = position >= 0 ? arguments[position] : weights_[i].tensor();
    glances_.forget(i);
    seen.push_back(i);
    if (!weights_[i].update(now)) continue;
    changed.push_back(i);
    if (!values.is_valid()) values = nb::dict();
    values[weights_[i].name().c_str()] = now.attr("detach")().attr("cpu")();
  }
  return values;
}

void BoundWeights::forget_one(size_t index) {
  weights_[index].forget();
  glances_.forget(index);
}

void BoundWeights::remember(size_t index) {
  const WatchedWeight& weight = weights_[index];
  if (check_ == WeightCheck::kFull && (contents_.is_none() || weight.state().on_host)) return;
  glances_.remember(index, weight.tensor(), weight.state(), weight.pieces());
}

}  // namespace ingot::python
