// SPDX-License-Identifier: Apache-2.0
#include "outputs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gil.h"

namespace ingot::python {
namespace {

size_t bytes_of(const OutputArray& output) {
  size_t bytes = element_bytes(output.dtype);
  for (const int64_t size : output.shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

bool are_small(std::span<const OutputArray> outputs) {
  size_t bytes = 0;
  for (const OutputArray& output : outputs) bytes += bytes_of(output);
  return bytes <= SpareOutputs::kMostBytes;
}

// Without memory for them there are none: the next call says so, if it still is full.
void allocate(std::span<OutputArray> outputs, nb::handle like, int32_t gpu) {
  try {
    for (OutputArray& each : outputs)
      each.array = allocate_array(like, each.dtype, static_cast<int32_t>(each.shape.size()),
                                  each.shape.data(), gpu, &each.data);
  } catch (nb::python_error&) {
    for (OutputArray& each : outputs) each.array.reset();
  }
}

}  // namespace

std::optional<SpareOutputs::Setting> SpareOutputs::find_setting(nb::handle like, std::optional<int32_t> gpu,
                                                                void* stream) {
  if (!gpu || !allocates_in_torch(like, gpu) || is_capturing_in_torch()) return std::nullopt;
  return Setting{.gpu = *gpu, .stream = stream, .is_inference = is_inference_in_torch()};
}

std::vector<OutputArray> SpareOutputs::take(const Setting& setting) {
  if (setting != setting_) return {};
  return std::exchange(outputs_, {});
}

// Other threads may take and refill whenever tensors are made or freed, since torch frees them without the
// GIL.
void SpareOutputs::refill(const Setting& setting, nb::handle like, std::span<const OutputArray> outputs,
                          bool are_same) {
  std::vector<OutputArray> next;
  for (const OutputArray& output : outputs) next.push_back({output.dtype, output.shape, {}, nullptr});
  if (are_same && are_small(outputs)) allocate(next, like, setting.gpu);
  setting_ = setting;
  outputs_.swap(next);
}

bool Outputs::take_spare(size_t index, int32_t dtype, std::span<const int64_t> shape) {
  const bool is_expected =
      index < spare_.size() && spare_[index].dtype == dtype && std::ranges::equal(spare_[index].shape, shape);
  were_expected_ &= is_expected;
  if (!is_expected) {
    made_[index] = {dtype, {shape.begin(), shape.end()}, {}, nullptr};
    return false;
  }
  made_[index] = std::move(spare_[index]);
  return made_[index].array.is_valid();
}

void* Outputs::allocate(void* self, size_t index, int32_t dtype, int32_t rank, const int64_t* shape, size_t) {
  static std::byte nothing;  // empty tensors may have no memory
  auto& outputs = *static_cast<Outputs*>(self);
  try {
    void* const data = outputs.place(index, dtype, {shape, static_cast<size_t>(rank)});
    return data != nullptr ? data : &nothing;
  } catch (...) {
    outputs.fail(std::current_exception());
    return nullptr;
  }
}

void* Outputs::place(size_t index, int32_t dtype, std::span<const int64_t> shape) {
  made_.resize(std::max(made_.size(), index + 1));
  OutputArray& made = made_[index];
  if (take_spare(index, dtype, shape)) return made.data;
  const HeldGil gil;
  made.array = ask_gil([&] {
    return allocate_array(like_, dtype, static_cast<int32_t>(shape.size()), shape.data(), gpu_, &made.data);
  });
  return made.data;
}

nb::list Outputs::take_list() {
  nb::list result;
  for (OutputArray& output : made_) result.append(std::move(output.array));
  return result;
}

}  // namespace ingot::python
