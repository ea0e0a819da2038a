// SPDX-License-Identifier: Apache-2.0
// ingot._core.Runner: the callable for torch.compile: one call into C++ per run, watches weights, returns a
// list of outputs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <new>
#include <optional>

#include "arguments.h"
#include "bindings.h"
#include "session.h"
#include "torch_tensors.h"
#include "weight_watch.h"

namespace ingot::python {
namespace {

class Runner {
 public:
  // `inputs`: positions of the engine's tensor inputs among the arguments. `weights`: (name, tensor, position
  // or -1), watched as `check_weights` says, with the help of `tensors` (None: each look goes through
  // Python). `like`: a torch tensor; results are torch tensors, on its device if that is a GPU. `contents`: a
  // DeviceContents that looks at the bytes of weights on GPUs, or None.
  Runner(nb::object engine, std::vector<int> inputs, const nb::list& weights, nb::object like,
         const std::string& check_weights, std::optional<TorchTensors> tensors, nb::object contents)
      : engine_(std::move(engine)),
        session_(nb::cast<Session*>(engine_)),
        inputs_(std::move(inputs)),
        like_(std::move(like)),
        check_(parse_weight_check(check_weights)),
        glances_(std::move(tensors), pairs_of(check_)),
        contents_(std::move(contents)) {
    ArrayView view;
    view_array(like_, view, "like");
    if (view.tensor.device_type == INGOT_DEVICE_CUDA) gpu_ = view.tensor.device_id;
    for (const nb::handle row : weights) {
      const nb::tuple weight = nb::cast<nb::tuple>(row);
      weights_.emplace_back(nb::cast<std::string>(weight[0]), nb::borrow(weight[1]), nb::cast<int>(weight[2]),
                            check_, !contents_.is_none());
      glances_.add(weights_.back().position());
      expect(weights_.back().position());
      remember(weights_.size() - 1);
    }
    for (const int position : inputs_) expect(position);
  }

  // Runs a copy of the engine; the last seen weights are copied too.
  Runner copy(const nb::dict& memo) const {
    Runner twin = *this;
    twin.engine_ = nb::module_::import_("copy").attr("deepcopy")(engine_, memo);
    twin.session_ = nb::cast<Session*>(twin.engine_);
    if (!contents_.is_none()) twin.contents_ = contents_.attr("copy")();
    return twin;
  }

  // The next call refits all weights: its engine has others than the last call saw.
  void forget() {
    for (size_t i = 0; i < weights_.size(); ++i) forget_one(i);
  }

  // `sequence`: a tuple or a list.
  nb::list call(nb::handle sequence) {
    const Arguments arguments(sequence, argument_count_);
    refit_changed(arguments);
    std::vector<nb::handle> tensors;
    tensors.reserve(inputs_.size());
    for (const int position : inputs_) tensors.push_back(arguments[position]);
    return session_->run(tensors, like_, gpu_);
  }

 private:
  // First what torch and the host's memory tell, so that the look at a GPU's has the addresses of now.
  void refit_changed(const Arguments& arguments) {
    const std::vector<size_t> seen = refit_seen(arguments);
    if (contents_.is_none()) return;
    nb::list bound;
    for (const size_t i : seen) bound.append(nb::make_tuple(i, weights_[i].tensor()));
    const nb::object others = contents_.attr("changed")(bound);
    if (others.is_none()) return;
    for (const nb::handle each : others) forget_one(nb::cast<size_t>(each));
    refit_seen(arguments);
  }

  // The indices of the weights that changed. If that fails, the next call tries again.
  std::vector<size_t> refit_seen(const Arguments& arguments) {
    std::vector<size_t> which;
    try {
      const nb::object changed = take_changed(arguments, which);
      // As when the engine was built, it has the weights where the model has them.
      if (changed.is_valid())
        engine_.attr("refit")(changed, nb::arg("partial") = true, nb::arg("keep") = true);
    } catch (...) {
      for (const size_t i : which) forget_one(i);
      throw;
    }
    return which;
  }

  void forget_one(size_t index) {
    weights_[index].forget();
    glances_.forget(index);
  }

  // A dict of the weights that differ, once there is one; `which`: their indices.
  nb::object take_changed(const Arguments& arguments, std::vector<size_t>& which) {
    nb::object changed;
    for (size_t i = 0; (i = glances_.find_changed(i, arguments.data())) < weights_.size(); ++i) {
      const int position = weights_[i].position();
      const nb::handle now = position >= 0 ? arguments[position] : weights_[i].tensor();
      const bool is_other = weights_[i].update(now);
      remember(i);
      if (!is_other) continue;
      which.push_back(i);
      if (!changed.is_valid()) changed = nb::dict();
      changed[weights_[i].name().c_str()] = now.attr("detach")().attr("cpu")();
    }
    return changed;
  }

  void expect(int position) {
    argument_count_ = std::max(argument_count_, static_cast<size_t>(position + 1));
  }

  void remember(size_t index) {
    const WatchedWeight& weight = weights_[index];
    if (check_ == WeightCheck::kFull && (contents_.is_none() || weight.state().on_host)) return;
    glances_.remember(index, weight.tensor(), weight.state(), weight.pieces());
  }

  nb::object engine_;  // keeps session_ alive
  Session* session_;
  std::vector<int> inputs_;
  nb::object like_;
  std::optional<int32_t> gpu_;  // of `like_`
  WeightCheck check_;
  WeightGlances glances_;
  nb::object contents_;
  std::vector<WatchedWeight> weights_;
  size_t argument_count_ = 0;  // that `inputs_` and `weights_` refer to
};

// Calls a runner with the tuple of its arguments as Python has it. Every other kind of callable is handed a
// copy, which for 200 weights takes as long as watching half of them.
class DirectCall {
 public:
  // `recover` takes the error of a call, and returns a callable for this call and all later ones, or raises.
  DirectCall(nb::object runner, nb::object recover)
      : runner_(std::move(runner)), recover_(std::move(recover)), called_(nb::cast<Runner*>(runner_)) {}

  nb::object call(nb::handle arguments) {
    if (!instead_.is_valid()) {
      try {
        return called_->call(arguments);
      } catch (nb::python_error& error) {
        instead_ = recover_(error.value());
      }
    }
    return nb::steal(PyObject_CallObject(instead_.ptr(), arguments.ptr()));  // null after an error
  }

 private:
  nb::object runner_, recover_, instead_;
  Runner* called_;
};

PyObject* call_directly(PyObject* self, PyObject* arguments, PyObject* keywords) noexcept {
  if (keywords != nullptr && PyDict_Size(keywords) > 0) {
    PyErr_SetString(PyExc_TypeError, "a compiled graph takes no keyword arguments");
    return nullptr;
  }
  try {
    return nb::inst_ptr<DirectCall>(self)->call(arguments).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// Not __call__, of which nanobind makes a function of its own.
PyType_Slot direct_call_slots[] = {{Py_tp_call, reinterpret_cast<void*>(&call_directly)}, {0, nullptr}};

}  // namespace

void bind_runner(nb::module_& module) {
  nb::class_<TorchTensors>(module, "TorchTensors")
      .def_static("find", &TorchTensors::find, nb::arg("first"), nb::arg("second"), nb::arg("outside"),
                  nb::arg("increment"));
  nb::class_<Runner>(module, "Runner")
      .def(nb::init<nb::object, std::vector<int>, const nb::list&, nb::object, const std::string&,
                    std::optional<TorchTensors>, nb::object>(),
           nb::arg("engine"), nb::arg("inputs"), nb::arg("weights"), nb::arg("like"),
           nb::arg("check_weights") = "fast", nb::arg("tensors").none() = nb::none(),
           nb::arg("contents").none() = nb::none())
      .def("__deepcopy__", &Runner::copy, nb::arg("memo"))
      .def("forget", &Runner::forget)
      .def("__call__", &Runner::call, nb::arg("arguments"));
  nb::class_<DirectCall>(module, "DirectCall", nb::type_slots(direct_call_slots))
      .def(nb::init<nb::object, nb::object>(), nb::arg("runner"), nb::arg("recover"));
}

}  // namespace ingot::python
