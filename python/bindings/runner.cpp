// SPDX-License-Identifier: Apache-2.0
// ingot._core.Runner: the callable for torch.compile: one call into C++ per run, watches weights, returns a
// list of outputs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

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
  // Python). `like`: a torch tensor; results are torch tensors, on its device if that is a GPU.
  Runner(nb::object engine, std::vector<int> inputs, const nb::list& weights, nb::object like,
         const std::string& check_weights, std::optional<TorchTensors> tensors)
      : engine_(std::move(engine)),
        session_(nb::cast<Session*>(engine_)),
        inputs_(std::move(inputs)),
        like_(std::move(like)),
        check_(parse_weight_check(check_weights)),
        glances_(std::move(tensors), word_count(check_)) {
    ArrayView view;
    view_array(like_, view, "like");
    on_device_ = view.tensor.device_type == INGOT_DEVICE_CUDA;
    for (const nb::handle row : weights) {
      const nb::tuple weight = nb::cast<nb::tuple>(row);
      weights_.emplace_back(nb::cast<std::string>(weight[0]), nb::borrow(weight[1]), nb::cast<int>(weight[2]),
                            check_);
      positions_.push_back(weights_.back().position());
      remember(glances_.add());
    }
  }

  // Runs a copy of the engine; the last seen weights are copied too.
  Runner copy(const nb::dict& memo) const {
    Runner twin = *this;
    twin.engine_ = nb::module_::import_("copy").attr("deepcopy")(engine_, memo);
    twin.session_ = nb::cast<Session*>(twin.engine_);
    return twin;
  }

  nb::list call(const nb::list& arguments) {
    refit_changed(arguments);
    std::vector<nb::handle> tensors;
    tensors.reserve(inputs_.size());
    for (const int position : inputs_) tensors.push_back(arguments[position]);
    return session_->run(tensors, like_, on_device_);
  }

 private:
  // If that fails, the next call tries again.
  void refit_changed(const nb::list& arguments) {
    std::vector<size_t> which;
    try {
      const nb::object changed = take_changed(arguments, which);
      // As when the engine was built, it has the weights where the model has them.
      if (changed.is_valid())
        engine_.attr("refit")(changed, nb::arg("partial") = true, nb::arg("keep") = true);
    } catch (...) {
      for (const size_t i : which) {
        weights_[i].forget();
        glances_.forget(i);
      }
      throw;
    }
  }

  // A dict of the weights that differ, once there is one; `which`: their indices.
  nb::object take_changed(const nb::list& arguments, std::vector<size_t>& which) {
    nb::object changed;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const nb::handle now = positions_[i] >= 0 ? argument(arguments, positions_[i]) : weights_[i].tensor();
      if (glances_.is_same(i, now)) continue;
      const bool is_other = weights_[i].update(now);
      remember(i);
      if (!is_other) continue;
      which.push_back(i);
      if (!changed.is_valid()) changed = nb::dict();
      changed[weights_[i].name().c_str()] = now.attr("detach")().attr("cpu")();
    }
    return changed;
  }

  void remember(size_t index) {
    if (check_ == WeightCheck::kFull) return;
    glances_.remember(index, weights_[index].tensor(), weights_[index].state());
  }

  // Borrowed.
  static nb::handle argument(const nb::list& arguments, int position) {
#ifndef Py_LIMITED_API
    if (position < PyList_GET_SIZE(arguments.ptr())) return PyList_GET_ITEM(arguments.ptr(), position);
#endif
    PyObject* found = PyList_GetItem(arguments.ptr(), position);
    if (found == nullptr) throw nb::python_error();
    return found;
  }

  nb::object engine_;  // keeps session_ alive
  Session* session_;
  std::vector<int> inputs_;
  nb::object like_;
  bool on_device_ = false;
  WeightCheck check_;
  WeightGlances glances_;
  std::vector<WatchedWeight> weights_;
  std::vector<int> positions_;  // of `weights_`, close together: each call reads all
};

}  // namespace

void bind_runner(nb::module_& module) {
  nb::class_<TorchTensors>(module, "TorchTensors")
      .def_static("find", &TorchTensors::find, nb::arg("first"), nb::arg("second"), nb::arg("outside"),
                  nb::arg("increment"));
  nb::class_<Runner>(module, "Runner")
      .def(nb::init<nb::object, std::vector<int>, const nb::list&, nb::object, const std::string&,
                    std::optional<TorchTensors>>(),
           nb::arg("engine"), nb::arg("inputs"), nb::arg("weights"), nb::arg("like"),
           nb::arg("check_weights") = "fast", nb::arg("tensors").none() = nb::none())
      .def("__deepcopy__", &Runner::copy, nb::arg("memo"))
      .def("__call__", &Runner::call);
}

}  // namespace ingot::python
