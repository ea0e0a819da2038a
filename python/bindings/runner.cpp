// SPDX-License-Identifier: Apache-2.0
// ingot._core.Runner: the callable for torch.compile: one call into C++ per run, watches weights, returns a
// list of outputs.
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
  // or -1), watched as `check_weights` says. `like`: a torch tensor; results are torch tensors, on its device
  // if that is a GPU.
  Runner(nb::object engine, std::vector<int> inputs, const nb::list& weights, nb::object like,
         const std::string& check_weights)
      : engine_(std::move(engine)),
        session_(nb::cast<Session*>(engine_)),
        inputs_(std::move(inputs)),
        like_(std::move(like)) {
    ArrayView view;
    view_array(like_, view, "like");
    on_device_ = view.tensor.device_type == INGOT_DEVICE_CUDA;
    if (nb::len(weights) > 0) torch_ = TorchTensors::find();
    for (const nb::handle row : weights) {
      const nb::tuple weight = nb::cast<nb::tuple>(row);
      weights_.emplace_back(nb::cast<std::string>(weight[0]), nb::borrow(weight[1]), nb::cast<int>(weight[2]),
                            parse_weight_check(check_weights), torch());
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
  const TorchTensors* torch() const { return torch_ ? &*torch_ : nullptr; }

  void refit_changed(const nb::list& arguments) {
    nb::object changed;  // a dict, once there is one to put into it
    for (WatchedWeight& weight : weights_) {
      const nb::handle now =
          weight.position() >= 0 ? argument(arguments, weight.position()) : weight.tensor();
      if (!weight.update(now, torch())) continue;
      if (!changed.is_valid()) changed = nb::dict();
      changed[weight.name().c_str()] = now.attr("detach")().attr("cpu")();
    }
    if (changed.is_valid()) engine_.attr("refit")(changed, nb::arg("partial") = true);
  }

  // Borrowed.
  static nb::handle argument(const nb::list& arguments, int position) {
    PyObject* found = PyList_GetItem(arguments.ptr(), position);
    if (found == nullptr) throw nb::python_error();
    return found;
  }

  nb::object engine_;  // keeps session_ alive
  Session* session_;
  std::vector<int> inputs_;
  nb::object like_;
  bool on_device_ = false;
  std::optional<TorchTensors> torch_;
  std::vector<WatchedWeight> weights_;
};

}  // namespace

void bind_runner(nb::module_& module) {
  nb::class_<Runner>(module, "Runner")
      .def(nb::init<nb::object, std::vector<int>, const nb::list&, nb::object, const std::string&>(),
           nb::arg("engine"), nb::arg("inputs"), nb::arg("weights"), nb::arg("like"),
           nb::arg("check_weights") = "fast")
      .def("__deepcopy__", &Runner::copy, nb::arg("memo"))
      .def("__call__", &Runner::call);
}

}  // namespace ingot::python
