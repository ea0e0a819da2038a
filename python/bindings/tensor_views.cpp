// SPDX-License-Identifier: Apache-2.0
#include "tensor_views.h"

#include <nanobind/stl/optional.h>

#include <utility>

#include "exchange.h"
#include "gil.h"

namespace ingot::python {

const TensorViews::Known* TensorViews::find(size_t input, nb::handle tensor) const {
  if (input >= seen_.size()) return nullptr;
  for (const Seen& seen : seen_[input]) {
    if (seen.type.is(tensor.type()) && torch_->offsets().are_same(tensor.ptr(), seen.contents))
      return &seen.known;
  }
  return nullptr;
}

void TensorViews::remember(size_t input, nb::handle tensor, const Known& known) {
  Seen seen;
  if (is_of_torch(tensor)) {
    ask_torch();
    std::optional<TorchTensors::Contents> contents = torch_ ? torch_->contents_of(tensor) : std::nullopt;
    if (contents) seen = {nb::borrow(tensor.type()), std::move(*contents), known};
  }
  if (input >= seen_.size()) {
    if (!seen.type.is_valid()) return;
    seen_.resize(input + 1);
  }
  for (Seen& each : seen_[input]) std::swap(each, seen);  // the end of a type may run Python
}

// Once: where torch keeps things is the same for all tensors of the process.
void TensorViews::ask_torch() {
  if (std::exchange(has_asked_, true)) return;
  ask_gil([&] {
    const nb::object found = nb::module_::import_("ingot.watching").attr("tensors")();
    torch_ = nb::cast<std::optional<TorchTensors>>(found);
  });
}

}  // namespace ingot::python
