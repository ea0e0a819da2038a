// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/execute/execute.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"
#include "support/thread_pool.h"

namespace ingot::core::cpu {
namespace {

// The entry point of an image, at its first byte: works on items [begin, end) and returns a KernelStatus.
using KernelFunction = int64_t (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end,
                                   void* scratch);

struct Images final : LoadedImages {
  std::vector<KernelFunction> functions;  // one an image of the engine; null for those of other backends
  std::shared_ptr<const void> memory;     // keeps the code mapped
};

bool is_ours(const Image& image) { return image.target.starts_with("cpu"); }

void require_features(const EngineData& data) {
  const CpuFeatures host = host_cpu_features();
  for (const Image& image : data.images) {
    if (!is_ours(image) || host.covers(image.needs)) continue;
    throw UserError("INGOT-U220",
                    fmt::format("the engine was built for a processor with {}; this one has {}",
                                to_string(image.needs), to_string(host)),
                    "build the engine for this processor, or with a lower cpu level");
  }
}

const SectionInfo& images_section(const EngineFile& file) {
  const auto found = std::ranges::find(file.sections(), "images", &SectionInfo::name);
  invariant(found != file.sections().end(), "an engine file has a section of images");
  return *found;
}

KernelFunction entry(const std::byte* code) {
  return reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(code));
}

void map_images(const EngineData& data, const EngineFile& file, Images& images) {
  const SectionInfo& section = images_section(file);
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

// Below this much work a thread costs more than it helps.
constexpr int64_t kNanosecondsPerPart = 4000;

// The grain that makes as many parts as the work is worth: the split depends on counts only.
int64_t grain_for(const KernelCall& call, int threads) {
  int64_t cost = 0;
  if (__builtin_mul_overflow(call.work_items, std::max<int64_t>(call.item_cost, 1), &cost)) cost = INT64_MAX;
  const int64_t parts = std::clamp<int64_t>(cost / kNanosecondsPerPart, 1, threads);
  const int64_t items = (call.work_items + parts - 1) / parts;
  return (items + call.grain - 1) / call.grain * call.grain;
}

class CpuExecutor final : public Executor {
 public:
  std::string_view name() const override { return "cpu"; }

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

  int64_t run(const LoadedImages& loaded, const KernelCall& call, ThreadPool& pool) const override {
    const KernelFunction function = static_cast<const Images&>(loaded).functions[call.image];
    if (call.work_items <= 0) return 0;
    const int threads = pool.threads();
    const int64_t grain = threads == 1 ? call.work_items : grain_for(call, threads);
    if (grain >= call.work_items)
      return function(call.buffers, call.symbols, 0, call.work_items, call.scratch);
    std::atomic<int64_t> status{0};
    pool.parallel_for(call.work_items, grain, [&](int64_t begin, int64_t end, int worker) {
      std::byte* scratch = call.scratch + worker * call.scratch_stride;
      const int64_t own = function(call.buffers, call.symbols, begin, end, scratch);
      if (own != 0) status.store(own, std::memory_order_relaxed);
    });
    return status.load(std::memory_order_relaxed);
  }
};

constinit const CpuExecutor kExecutor;

}  // namespace

const Executor& executor() { return kExecutor; }

}  // namespace ingot::core::cpu
