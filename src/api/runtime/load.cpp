// SPDX-License-Identifier: Apache-2.0
// Loading engines from files and memory, and saving them.
#include <algorithm>

#include "api/runtime/checks.h"
#include "api/runtime/groups.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "api/runtime/signing.h"
#include "api/runtime/weight_budget.h"
#include "api/runtime/weights_file.h"
#include "engine/levels.h"
#include "runtime/memory.h"
#include "runtime/snapshot.h"
#include "support/error.h"
#include "support/paths.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstLoadOptions = offsetof(ingot_load_options, trust) + sizeof(int32_t);

LoadOptions read_options(const ingot_load_options* given) {
  if (given == nullptr) return {};
  const auto options = api::read_struct(given, kFirstLoadOptions, "ingot_load_options");
  if (options.verify < INGOT_VERIFY_LAZY || options.verify > INGOT_VERIFY_FULL)
    throw UserError("INGOT-U016", "ingot_load_options.verify is not an ingot_verify");
  if (options.trust < INGOT_TRUST_ANY || options.trust > INGOT_TRUST_NONE)
    throw UserError("INGOT-U016", "ingot_load_options.trust is not an ingot_trust");
  if (options.memory < INGOT_MEMORY_MAP || options.memory > INGOT_MEMORY_COPY)
    throw UserError("INGOT-U016", "ingot_load_options.memory is not an ingot_file_memory");
  const bool is_signed = options.trust == INGOT_TRUST_SIGNED;
  return {.verify = static_cast<Verify>(options.verify),
          .trust = static_cast<Trust>(options.trust),
          .memory = static_cast<FileMemory>(options.memory),
          .trusted = is_signed ? api::trusted_keys(options.trusted_keys) : std::vector<PublicKey>{},
          .weight_budget = options.weight_budget == nullptr ? WeightBudget{}
                                                            : api::read_weight_budget(options.weight_budget),
          .gpu = options.gpu,
          .cpu = options.cpu == nullptr ? "" : options.cpu};
}

std::shared_ptr<const EngineFile> open_bytes(Bytes bytes, std::shared_ptr<const void> owner,
                                             const LoadOptions& options) {
  if (options.memory == FileMemory::kMap)
    return EngineFile::open(bytes, std::move(owner), Checksums::kVerify, options.cpu);
  const std::shared_ptr<std::byte> copy = allocate_memory(bytes.size());
  std::ranges::copy(bytes, copy.get());
  return EngineFile::open({copy.get(), bytes.size()}, copy, Checksums::kVerify, options.cpu);
}

// An engine that leaves its weights to a file takes them from there, unless the caller gives them.
std::unique_ptr<ingot_engine> with_weights(std::shared_ptr<Engine> loaded, const ingot_load_options* given,
                                           const std::filesystem::path& folder) {
  auto handle = std::make_unique<ingot_engine>(std::move(loaded));
  const ingot_load_options options = given == nullptr
                                         ? ingot_load_options{}
                                         : api::read_struct(given, kFirstLoadOptions, "ingot_load_options");
  if (!handle->data->weights_files.empty() && options.without_weights == 0)
    api::take_file_weights(*handle, folder, static_cast<FileMemory>(options.memory),
                           api::find_ranks(*handle->data, options.rank));
  return handle;
}

std::shared_ptr<const EngineData> data_to_write(const ingot_engine& engine,
                                                const std::filesystem::path& folder) {
  const auto data = engine.engine == nullptr ? engine.data : snapshot(engine.engine);
  if (data->weights_files.empty() || folder.empty()) return data;
  auto named = std::make_shared<EngineData>(*data);
  for (std::string& file : named->weights_files) file = api::name_from(folder, to_path(file));
  share_sources(*named);
  return named;
}

// Writes the current engine, to a file of `folder` if it has one; detects if the file that it is mapped from
// changes meanwhile.
void write_current(const ingot_engine& engine, const Sink& sink, const std::filesystem::path& folder = {},
                   const WriteWatch& watch = {}) {
  api::require_unchanged_model(engine);
  const auto data = data_to_write(engine, folder);
  write_engine(*data, sink, engine.engine == nullptr ? nullptr : engine.engine->file().get(), watch);
  api::require_unchanged_model(engine);
}

}  // namespace

void ingot::core::api::save(const ingot_engine& handle, const char* path, const WriteWatch& watch) {
  const std::filesystem::path file = to_path(path);
  std::error_code no_path;  // writing says what is wrong with it
  const std::filesystem::path folder = std::filesystem::absolute(file, no_path).parent_path();
  write_file_atomically(file, [&](const Sink& sink) { write_current(handle, sink, folder, watch); });
}

extern "C" {

ingot_status* ingot_engine_load(const char* path, const ingot_load_options* options, ingot_engine** engine) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(engine, "engine");
    const std::filesystem::path file = to_path(path);
    auto loaded = Engine::load(file, read_options(options), api::host());
    *engine = with_weights(std::move(loaded), options, file.parent_path()).release();
  });
}

ingot_status* ingot_engine_load_memory(const void* data, size_t size, void (*release)(void* owner),
                                       void* owner, const ingot_load_options* options,
                                       ingot_engine** engine) {
  return api::guard([&] {
    // The memory is released even if loading fails.
    const auto give_back = [release](void* memory) {
      if (release != nullptr) release(memory);
    };
    const std::shared_ptr<const void> memory(owner, give_back);
    api::require(data, "data");
    api::require(engine, "engine");
    const LoadOptions given = read_options(options);
    const auto file = open_bytes({static_cast<const std::byte*>(data), size}, memory, given);
    *engine = with_weights(Engine::load(file, given, api::host()), options, {}).release();
  });
}

ingot_status* ingot_engine_save(const ingot_engine* engine, const char* path) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(path, "path");
    api::save(*engine, path);
  });
}

ingot_status* ingot_engine_save_memory(const ingot_engine* engine, ingot_text** bytes) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(bytes, "bytes");
    std::string file;
    write_current(*engine,
                  [&](Bytes part) { file.append(reinterpret_cast<const char*>(part.data()), part.size()); });
    *bytes = api::make_text(std::move(file));
  });
}

ingot_status* ingot_engine_copy(const ingot_engine* engine, ingot_engine** copy) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(copy, "copy");
    api::require_unchanged_model(*engine);
    auto made = engine->engine == nullptr ? std::make_unique<ingot_engine>(engine->data)
                                          : std::make_unique<ingot_engine>(engine->engine->copy());
    made->model = engine->model;
    *copy = made.release();
  });
}

ingot_status* ingot_engine_copy_to(const ingot_engine* engine, int32_t gpu, ingot_engine** copy) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(copy, "copy");
    api::require_unchanged_model(*engine);
    auto made = std::make_unique<ingot_engine>(api::runnable(*engine)->copy_to(gpu));
    made->model = engine->model;
    *copy = made.release();
  });
}

int32_t ingot_engine_gpu(const ingot_engine* engine) {
  const bool is_on_gpu = engine != nullptr && engine->engine != nullptr && !engine->data->devices.empty();
  return is_on_gpu ? engine->engine->gpu() : -1;
}

void ingot_engine_free(ingot_engine* engine) { delete engine; }

ingot_status* ingot_verify_file(const char* path) {
  return api::guard([&] {
    api::require(path, "path");
    open_copy(to_path(path))->verify_all();
  });
}

}  // extern "C"
