// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/execute/execute.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/core.h>

#include "backends/cpu/kernel_abi.h"
#include "engine/levels.h"
#include "runtime/memory.h"
#include "support/cpu_features.h"
#include "support/error.h"
#include "support/file.h"
#include "support/thread_pool.h"

namespace ingot::core::cpu {
namespace {

struct Images final : LoadedImages {
  std::vector<KernelFunction>
      functions;  // one per kernel binary of the engine; null for those of other backends
  std::shared_ptr<const void> memory;  // keeps the code mapped
};

bool is_ours(const Image& image) { return backend_of(image) == "cpu"; }

// Features of the processor that a kernel binary was built for.
CpuFeatures needs_of(const Image& image) { return parse_cpu_features(device_of(image)); }

// All levels of an engine with several, unless this processor could run another one than was asked for.
std::string built_for(const EngineData& data, CpuFeatures needs) {
  const Levels levels = levels_of(data);
  const auto runs = [](const EngineData* level) { return missing_for(*level).empty(); };
  return levels.size() == 1 || std::ranges::any_of(levels, runs) ? to_string(needs) : name_levels(levels);
}

void require_features(const EngineData& data) {
  const CpuFeatures host = host_cpu_features();
  for (const Image& image : data.images) {
    if (!is_ours(image)) continue;
    const CpuFeatures needs = needs_of(image);
    if (!host.covers(needs))
      throw UserError("INGOT-U220",
                      fmt::format("the engine was built for a processor with {}; this one has {}",
                                  built_for(data, needs), to_string(host)),
                      "rebuild the engine for this processor, or for a lower cpu level");
    if (!request_cpu_features(needs))
      throw UserError("INGOT-U220",
                      fmt::format("the engine was built for a processor with {}; the system refuses its "
                                  "matrix registers to this process",
                                  to_string(needs)),
                      "allow the system call arch_prctl, or rebuild the engine for a cpu level without amx");
  }
}

KernelFunction entry(const std::byte* code) {
  return reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(code));
}

void map_images(const EngineData& data, const EngineFile& file, Images& images) {
  const SectionInfo& section = file.images();
  const auto map = file.map()->map_executable(section.offset, section.length);
  for (size_t i = 0; i < data.images.size(); ++i) {
    const Bytes checked = data.images[i].code;
    const Bytes mapped = map->bytes().subspan(file.image_offset(i) - section.offset, checked.size());
    if (!is_ours(data.images[i])) continue;
    if (!std::ranges::equal(mapped, checked)) file.refuse_change(section.name);
    images.functions[i] = entry(mapped.data());
  }
  images.memory = map;
}

void copy_images(const EngineData& data, Images& images) {
  constexpr size_t kAlignment = 64;
  std::vector<std::byte> code;
  std::vector<size_t> offsets;
  for (const Image& image : data.images) {
    code.resize((code.size() + kAlignment - 1) / kAlignment * kAlignment);
    offsets.push_back(code.size());
    if (is_ours(image)) code.insert(code.end(), image.code.begin(), image.code.end());
  }
  const std::shared_ptr<const std::byte> copy = make_executable_copy(code);
  for (size_t i = 0; i < data.images.size(); ++i) {
    if (is_ours(data.images[i])) images.functions[i] = entry(copy.get() + offsets[i]);
  }
  images.memory = copy;
}

// Below this much work, a thread costs more than it helps.
constexpr int64_t kNanosecondsPerPart = 4000;

// The grain for as many parts as the work is worth: the split depends on counts only.
int64_t grain_for(const Launch& launch, int64_t items, int threads) {
  int64_t cost = 0;
  const int64_t item_cost = std::max<int64_t>(launch.constants[kItemCost], 1);
  if (__builtin_mul_overflow(items, item_cost, &cost)) cost = INT64_MAX;
  const int64_t parts = std::clamp<int64_t>(cost / kNanosecondsPerPart, 1, threads);
  const int64_t part = (items + parts - 1) / parts;
  const int64_t grain = launch.constants[kGrain];
  return (part + grain - 1) / grain * grain;
}

// Runs each call immediately, on the caller's thread pool.
class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(const MemoryAllocator* allocator) : scratch_(allocator) {}

  std::optional<CallFailure> run(const CallSpan& span) override {
    const Images& images = static_cast<const Images&>(*span.images);
    for (const KernelCall& call : span.calls) {
      if (call.launch == nullptr) {
        copy_on_host(call);
        continue;
      }
      const int64_t status = run_kernel(images.functions[call.launch->image], call, *span.pool);
      if (status != 0) [[unlikely]]
        return CallFailure{call.launch, status};
    }
    return std::nullopt;
  }

  size_t scratch_bytes() const override { return scratch_.bytes(); }

 private:
  int64_t run_kernel(KernelFunction function, const KernelCall& call, ThreadPool& pool) {
    const int64_t items = call.sizes[kWorkItems];
    if (items <= 0) return 0;
    const int threads = pool.threads();
    const int64_t stride = scratch_stride(call.sizes[kScratchBytes]);
    std::byte* const scratch = scratch_.reserve(static_cast<size_t>(stride * threads));
    const int64_t grain = threads == 1 ? items : grain_for(*call.launch, items, threads);
    if (grain >= items) return function(call.buffers.data(), call.symbols, 0, items, scratch);
    std::atomic<int64_t> status{0};
    pool.parallel_for(items, grain, [&](int64_t begin, int64_t end, int worker) {
      const int64_t own = function(call.buffers.data(), call.symbols, begin, end, scratch + worker * stride);
      if (own != 0) status.store(own, std::memory_order_relaxed);
    });
    return status.load(std::memory_order_relaxed);
  }

  // Each worker's part starts at a multiple of 64 bytes. Sizes above kMost exceed any memory, and fail when
  // they are reserved; multiplied by the number of workers they do not overflow.
  static int64_t scratch_stride(int64_t bytes) {
    constexpr int64_t kAlignment = 64, kMost = int64_t{1} << 48;
    if (bytes < 0 || bytes > kMost) return kMost;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  GrowingBlock scratch_;
};

class CpuExecutor final : public Executor {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string processor() const override { return host_cpu_model(); }

  std::string missing(const Image& image) const override {
    const CpuFeatures needs = needs_of(image);
    const bool has_all = host_cpu_features().covers(needs) && request_cpu_features(needs);
    return has_all ? "" : to_string(needs);
  }

  std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile* file) const override {
    require_features(data);
    auto images = std::make_unique<Images>();
    images->functions.resize(data.images.size());
    if (file != nullptr && file->map() != nullptr) {
      map_images(data, *file, *images);
    } else {
      copy_images(data, *images);
    }
    return images;
  }

  bool is_valid(const Launch& launch, size_t) const override {
    return launch.sizes.size() == kLaunchSizes && launch.constants.size() == kLaunchConstants &&
           launch.constants[kGrain] >= 1 && launch.constants[kItemCost] >= 0;
  }

  std::unique_ptr<Queue> open_queue(const MemoryAllocator* allocator) const override {
    return std::make_unique<CpuQueue>(allocator);
  }
};

constinit const CpuExecutor kExecutor;

}  // namespace

const Executor& executor() { return kExecutor; }

}  // namespace ingot::core::cpu
