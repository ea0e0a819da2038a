// SPDX-License-Identifier: Apache-2.0
// Tensors of Python without linking any framework: DLPack's C exchange API where the type offers it (torch),
// the buffer protocol otherwise (numpy).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "ingot/ingot.h"

namespace ingot::python {

namespace nb = nanobind;

constexpr int kMaxRank = 64;

// A borrowed view: valid while the Python object lives. `shape` and `strides` point into the framework's own
// memory, or into `sizes`.
struct ArrayView {
  ingot_tensor tensor{};
  int64_t sizes[2 * kMaxRank];
  Py_buffer buffer{};  // held only for the buffer protocol
  bool has_buffer = false;

  ArrayView() = default;
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;
  ~ArrayView() {
    if (has_buffer) PyBuffer_Release(&buffer);
  }
};

// Fills `view`; raises ingot.UserError if `object` is no dense CPU tensor of a known dtype. `what` names it.
void view_array(nb::handle object, ArrayView& view, const char* what);

// The same for an argument whose memory the call writes; raises ingot.UserError where it is known to be
// read-only. What torch made of read-only memory (torch.from_numpy) is not known to be.
void view_updated_array(nb::handle object, ArrayView& view, const char* what);

// Tells autograd that a torch tensor was written, as torch's own in-place operators do; nothing for other
// arrays.
void bump_version(nb::handle object);

// Raises ingot.UserError for a tensor whose memory holds the negative of what it stands for (torch's neg
// bit): DLPack does not tell.
void refuse_lazy_negation(nb::handle object, const char* what);

// The stream of the first GPU that the framework of `tensor` works on now; never null.
void* current_stream(nb::handle tensor);

// A new framework array like `like` (same framework), in memory of the host or of the first GPU; its memory
// is reported through `data`.
nb::object allocate_array(nb::handle like, int32_t dtype, int32_t rank, const int64_t* shape, bool on_device,
                          void** data);

}  // namespace ingot::python
