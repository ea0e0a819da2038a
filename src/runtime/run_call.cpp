// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_call.h"

#include <vector>

namespace ingot::core {
namespace {

std::vector<int64_t> evaluate_all(std::span<const Dim> dims, const SymbolValues& sizes) {
  std::vector<int64_t> values;
  for (const Dim& dim : dims) values.push_back(evaluate(dim, sizes));
  return values;
}

}  // namespace

std::optional<CallFailure> run_call(const Executor& executor, const LoadedImages& images, Launch launch,
                                    std::span<const HostBuffer> buffers, const SymbolValues& sizes,
                                    ThreadPool* pool) {
  DeviceMemory* const device = executor.memory();
  std::vector<std::shared_ptr<std::byte>> copies;
  std::vector<void*> addresses;
  for (const HostBuffer& buffer : buffers) {
    std::byte* start = buffer.memory.data();
    if (device != nullptr) {
      copies.push_back(device->allocate(buffer.memory.size()));
      start = copies.back().get();
      device->copy(start, buffer.memory.data(), buffer.memory.size());
    }
    addresses.push_back(start + buffer.offset);
  }
  const std::vector<int64_t> symbols = evaluate_all(launch.symbols, sizes);
  const std::vector<int64_t> launch_sizes = evaluate_all(launch.sizes, sizes);
  launch.image = 0;
  const KernelCall call{&launch, addresses, symbols.data(), launch_sizes.data()};
  const auto queue = executor.open_queue();
  std::optional<CallFailure> failure = queue->run({&images, {&call, 1}, pool});
  if (const auto later = queue->wait(); later && !failure) failure = later;
  for (size_t i = 0; i < copies.size(); ++i)
    device->copy(buffers[i].memory.data(), copies[i].get(), buffers[i].memory.size());
  return failure;
}

}  // namespace ingot::core
