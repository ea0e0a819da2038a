// SPDX-License-Identifier: Apache-2.0
// Python tensors without linking any framework: DLPack's C exchange API if the type offers it (torch),
// otherwise the buffer protocol (numpy).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ingot/ingot.h"

namespace ingot::python {

namespace nb = nanobind;

constexpr int kMaxRank = 64;

// A borrowed view, valid while the Python object lives. `shape` and `strides` point into the framework's
// memory, or to `sizes`. Small, since each call makes one per input: malloc merges free memory first when it
// is asked for a kilobyte.
struct ArrayView {
  ingot_tensor tensor{};
  std::unique_ptr<int64_t[]> sizes;  // only for the buffer protocol, as `buffer`
  Py_buffer buffer{};
  bool has_buffer = false;

  ArrayView() = default;
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;
  ~ArrayView() {
    if (has_buffer) PyBuffer_Release(&buffer);
  }
};

size_t element_bytes(int32_t dtype);  // of a dtype that a view can have

bool has_exchange_api(nb::handle object);  // else its buffer is viewed, if it has one

bool is_of_torch(nb::handle object);  // whether it is a tensor of torch

// Fills `view`; raises ingot.UserError if `object` is not a dense CPU tensor of a known dtype. `what` names
// it.
void view_array(nb::handle object, ArrayView& view, const char* what);

// The same for an argument that the call writes; raises ingot.UserError if it is known to be read-only.
// Tensors that torch made from read-only memory (torch.from_numpy) are not known to be.
void view_updated_array(nb::handle object, ArrayView& view, const char* what);

// Tells autograd that tensors of torch were written, as torch's own in-place operators do; no effect on other
// arrays.
void bump_versions(std::span<const nb::handle> objects);

// A tensor of torch whose memory holds its values in the order of its dims, for one whose memory holds the
// negated or conjugated ones (torch's neg and conj bits, which DLPack does not expose), or that is on a GPU
// and not contiguous; null for all others. `view`: of `object`.
nb::object resolved(nb::handle object, const ArrayView& view);
// The same for an argument that the call writes: raises ingot.UserError in place of returning another tensor.
void refuse_lazy(nb::handle object, const ArrayView& view, const char* what);

// The current stream of the tensor's framework on that GPU; never null.
void* current_stream(nb::handle tensor, int32_t gpu);

// A torch tensor if the process has imported torch; otherwise a null object, which means numpy.
nb::object tensor_of_torch();

// Whether such an array would be torch's own: a tensor as torch makes it, with memory of its allocator.
bool allocates_in_torch(nb::handle like, std::optional<int32_t> gpu);

// Whether torch captures its current stream, or is in torch.inference_mode(); false where it has no GPU.
bool is_capturing_in_torch();
bool is_inference_in_torch();

// A new array of the same framework as `like`, in host memory or on a GPU; returns its memory in
// `data`.
nb::object allocate_array(nb::handle like, int32_t dtype, int32_t rank, const int64_t* shape,
                          std::optional<int32_t> gpu, void** data);

}  // namespace ingot::python
