// SPDX-License-Identifier: Apache-2.0
// The result arrays of calls.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "exchange.h"

namespace ingot::python {

struct OutputArray {
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  nb::object array;  // null: not allocated
  void* data = nullptr;
};

// Results for the next call, which torch allocates while a GPU still computes those of this one: that takes
// the host longer than to launch a graph, and an idle GPU would wait for it. They are made when two calls in
// a row had the same results, and small, since they take memory between calls. Guarded by the GIL.
class SpareOutputs {
 public:
  static constexpr size_t kMostBytes = 1 << 20;  // of all results together

  // What torch's allocations follow from, beside dtypes and sizes.
  struct Setting {
    int32_t gpu = 0;
    void* stream = nullptr;
    bool is_inference = false;  // tensors made in torch.inference_mode() cannot be used outside of it
    bool operator==(const Setting&) const = default;
  };
  // Nothing where results cannot be made beforehand: while torch captures the stream in a graph, which has
  // memory of its own, or where torch's current GPU is another.
  static std::optional<Setting> find_setting(nb::handle like, std::optional<int32_t> gpu, void* stream);

  // The results of the last call in this setting, with arrays if it was like the one before.
  std::vector<OutputArray> take(const Setting& setting);
  // After a call. `are_same`: as those that `take` returned.
  void refill(const Setting& setting, nb::handle like, std::span<const OutputArray> outputs, bool are_same);

 private:
  std::optional<Setting> setting_;
  std::vector<OutputArray> outputs_;
};

// The results of one call.
class Outputs {
 public:
  // `spare`: what they probably are.
  Outputs(nb::handle like, std::optional<int32_t> gpu, std::vector<OutputArray> spare)
      : like_(like), gpu_(gpu), spare_(std::move(spare)) {}

  // For the runtime, which calls it without the GIL; `self` is an Outputs. Null after an exception, which
  // `rethrow` raises when the run has returned.
  static void* allocate(void* self, size_t index, int32_t dtype, int32_t rank, const int64_t* shape, size_t);
  void fail(std::exception_ptr failure) { failure_ = std::move(failure); }
  bool has_failed() const { return failure_ != nullptr; }
  [[noreturn]] void rethrow() const { std::rethrow_exception(failure_); }

  bool were_expected() const { return were_expected_ && made_.size() == spare_.size(); }
  std::span<const OutputArray> made() const { return made_; }
  nb::list take_list();

 private:
  void* place(size_t index, int32_t dtype, std::span<const int64_t> shape);
  bool take_spare(size_t index, int32_t dtype, std::span<const int64_t> shape);

  nb::handle like_;
  std::optional<int32_t> gpu_;  // that they are on
  std::vector<OutputArray> spare_, made_;
  bool were_expected_ = true;
  std::exception_ptr failure_;
};

}  // namespace ingot::python
