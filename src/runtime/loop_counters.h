// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <vector>

#include "runtime/memory.h"
#include "runtime/transfers.h"

namespace ingot::core {

// `memory`: of the device that `data` is on; nothing there may be writing it.
template <typename T>
T read_scalar(const std::byte* data, DeviceMemory* memory = nullptr) {
  T value;
  if (memory != nullptr)
    memory->copy(reinterpret_cast<std::byte*>(&value), data, sizeof(value));
  else
    std::memcpy(&value, data, sizeof(value));
  return value;
}

// What the host and the body of a loop tell each other, in the body's place.
class LoopCounters {
 public:
  LoopCounters(GrowingBlock& block, DeviceMemory* memory, bool goes_on) : memory_(memory), goes_on_(goes_on) {
    if (memory != nullptr) there_ = block.reserve(sizeof(iteration_) + sizeof(goes_on_), memory);
  }
  std::byte* iteration() { return there_ != nullptr ? there_ : reinterpret_cast<std::byte*>(&iteration_); }
  std::byte* condition() {
    return there_ != nullptr ? there_ + sizeof(iteration_) : reinterpret_cast<std::byte*>(&goes_on_);
  }
  bool goes_on() const { return goes_on_ != 0; }  // any nonzero byte is true
  // Nothing on the device may be using them.
  void begin(int64_t iteration) {
    iteration_ = iteration;
    if (there_ != nullptr)
      memory_->copy(there_, reinterpret_cast<const std::byte*>(&iteration_), sizeof(iteration_));
  }
  void end() {
    if (there_ != nullptr) goes_on_ = read_scalar<uint8_t>(condition(), memory_);
  }

 private:
  DeviceMemory* memory_;
  std::byte* there_ = nullptr;  // on the device
  int64_t iteration_ = 0;
  uint8_t goes_on_;
};

// Carried values alternate between the results and a second block, so that an iteration never overwrites its
// inputs.
struct CarriedValues {
  DeviceMemory* memory;
  std::vector<std::byte*> reads,
      writes;  // of the body: the iteration or the condition, then carried values ...
  struct Value {
    std::byte *result, *spare;
    size_t bytes;
  };
  std::vector<Value> values = {};

  void add(std::byte* result, std::byte* spare, size_t bytes) {
    values.push_back({result, spare, bytes});
    writes.push_back(result);
  }
  void alternate() {
    for (size_t i = 0; i < values.size(); ++i) {
      reads[1 + i] = writes[1 + i];
      writes[1 + i] = reads[1 + i] == values[i].result ? values[i].spare : values[i].result;
    }
  }
  // Puts the last values into the results.
  void finish() const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (reads[1 + i] != values[i].result) copy_in(memory, values[i].result, reads[1 + i], values[i].bytes);
    }
  }
};

}  // namespace ingot::core
