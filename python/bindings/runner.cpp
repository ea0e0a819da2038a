// SPDX-License-Identifier: Apache-2.0
// ingot._core.Runner: the callable for torch.compile: one call into C++ per run, watches weights, has an
// engine for each module that shares the graph, returns a list of outputs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "arguments.h"
#include "bindings.h"
#include "bound_weights.h"
#include "gil.h"
#include "session.h"
#include "torch_tensors.h"
#include "turn.h"

namespace ingot::python {
namespace {

constexpr size_t kMostBound = 256;  // sets of weights whose engines are kept

class Runner {
 public:
  // `inputs`: positions of the engine's tensor inputs among the arguments. `weights`, `check_weights`,
  // `tensors`, `contents`: of BoundWeights. `like`: a torch tensor; results are torch tensors, on its device
  // if that is a GPU. `most`: sets of weights that have engines at a time.
  Runner(nb::object engine, std::vector<int> inputs, const nb::list& weights, nb::object like,
         const std::string& check_weights, std::optional<TorchTensors> tensors, nb::object contents,
         size_t most)
      : engine_(std::move(engine)),
        session_(nb::cast<Session*>(engine_)),
        inputs_(std::move(inputs)),
        like_(std::move(like)),
        most_(most),
        bounds_{std::make_shared<BoundWeights>(engine_, weights, parse_weight_check(check_weights),
                                               std::move(tensors), std::move(contents))} {
    ArrayView view;
    view_array(like_, view, "like");
    if (view.tensor.device_type == INGOT_DEVICE_CUDA) gpu_ = view.tensor.device_id;
    for (size_t i = 0; i < bounds_.front()->count(); ++i) expect(bounds_.front()->position(i));
    for (const int position : inputs_) expect(position);
  }

  // Runs a copy of the engine with the last seen weights.
  Runner copy(const nb::dict& memo) const {
    Runner twin = *this;
    const std::shared_ptr<BoundWeights> last = bounds_.front();
    twin.engine_ =
        ask_gil([&]() -> nb::object { return nb::module_::import_("copy").attr("deepcopy")(engine_, memo); });
    twin.session_ = nb::cast<Session*>(twin.engine_);
    if (!is_main(*last)) twin.engine_.attr("take_weights")(last->engine());
    twin.bounds_ = {std::make_shared<BoundWeights>(*last, twin.engine_)};
    return twin;
  }

  void forget() { bounds_.front()->forget(); }

  // `sequence`: a tuple or a list.
  nb::list call(nb::handle sequence) {
    const Arguments arguments(sequence, argument_count_);
    std::shared_ptr<BoundWeights> bound = bounds_.front();
    size_t first = bound->find_changed(arguments);
    if (!bound->are_same(arguments, first)) {
      bound = nullptr;  // unused, if no other call is in it
      bound = bind(arguments);
      first = 0;
    }
    bound->refit_changed(arguments, first);
    std::vector<nb::handle> tensors;
    tensors.reserve(inputs_.size());
    for (const int position : inputs_) tensors.push_back(arguments[position]);
    return session_->run_ahead(tensors, like_, gpu_, is_main(*bound) ? nullptr : bound->session().hold());
  }

 private:
  using Bounds = std::vector<std::shared_ptr<BoundWeights>>;

  // What is bound to these tensors, first among `bounds_` from now on. Without any, what was bound to tensors
  // that are gone takes them, or, where there are many, what was not called for longest.
  std::shared_ptr<BoundWeights> bind(const Arguments& arguments) {
    if (most_ == 1) return bounds_.front();
    const auto turn = binding_.take();
    std::vector<nb::object> old;
    auto found = std::ranges::find_if(bounds_, [&](const auto& each) { return each->are_same(arguments); });
    if (found == bounds_.end()) {
      found = find_reusable();
      std::shared_ptr<BoundWeights> taken = found == bounds_.end() ? copy_of_last() : *found;
      old = taken->watch(arguments);  // before other calls can find it
      if (found == bounds_.end()) found = bounds_.insert(found, std::move(taken));
    }
    std::rotate(bounds_.begin(), found, found + 1);
    const std::shared_ptr<BoundWeights> bound = bounds_.front();
    const Bounds left = take_left();
    return bound;
  }

  std::shared_ptr<BoundWeights> copy_of_last() const {
    const std::shared_ptr<BoundWeights> last = bounds_.front();
    return std::make_shared<BoundWeights>(*last, nb::cast(last->session().copy_weights()));
  }

  Bounds::iterator find_reusable() {
    const auto left = find_left();
    return left == bounds_.end() && bounds_.size() >= most_ ? find_last_unused() : left;
  }

  bool is_main(const BoundWeights& bound) const { return &bound.session() == session_; }
  static bool is_unused(const std::shared_ptr<BoundWeights>& bound) { return bound.use_count() == 1; }
  static bool is_left(const std::shared_ptr<BoundWeights>& bound) {
    return is_unused(bound) && !bound->are_used_elsewhere();
  }

  // The engine that runs before others: it cannot go.
  Bounds::iterator find_left() {
    const auto found =
        std::ranges::find_if(bounds_, [&](const auto& each) { return is_main(*each) && is_left(each); });
    return found != bounds_.end() ? found : std::ranges::find_if(bounds_, &is_left);
  }

  Bounds::iterator find_last_unused() {
    const auto found = std::find_if(bounds_.rbegin(), bounds_.rend(), &is_unused);
    return found == bounds_.rend() ? bounds_.end() : std::prev(found.base());
  }

  // All that nobody uses any more.
  Bounds take_left() {
    const auto first = std::stable_partition(
        bounds_.begin(), bounds_.end(), [&](const auto& each) { return is_main(*each) || !is_left(each); });
    Bounds left(std::make_move_iterator(first), std::make_move_iterator(bounds_.end()));
    bounds_.erase(first, bounds_.end());
    return left;
  }

  void expect(int position) {
    argument_count_ = std::max(argument_count_, static_cast<size_t>(position + 1));
  }

  nb::object engine_;  // keeps session_ alive
  Session* session_;
  std::vector<int> inputs_;
  nb::object like_;
  std::optional<int32_t> gpu_;  // of `like_`
  size_t most_;
  Bounds bounds_;  // never empty; the last used first
  Turn binding_;
  size_t argument_count_ = 0;  // that `inputs_` and the weights refer to
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
                  nb::arg("increment"))
      .def_prop_ro("tensor_bytes", [](const TorchTensors& torch) { return torch.offsets().end; });
  nb::class_<Runner>(module, "Runner")
      .def(nb::init<nb::object, std::vector<int>, const nb::list&, nb::object, const std::string&,
                    std::optional<TorchTensors>, nb::object, size_t>(),
           nb::arg("engine"), nb::arg("inputs"), nb::arg("weights"), nb::arg("like"),
           nb::arg("check_weights") = "fast", nb::arg("tensors").none() = nb::none(),
           nb::arg("contents").none() = nb::none(), nb::arg("most") = kMostBound)
      .def("__deepcopy__", &Runner::copy, nb::arg("memo"))
      .def("forget", &Runner::forget)
      .def("__call__", &Runner::call, nb::arg("arguments"));
  nb::class_<DirectCall>(module, "DirectCall", nb::type_slots(direct_call_slots))
      .def(nb::init<nb::object, nb::object>(), nb::arg("runner"), nb::arg("recover"));
}

}  // namespace ingot::python
