// SPDX-License-Identifier: Apache-2.0
// Engines from files and memory, and back.
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "runtime/snapshot.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstLoadOptions = offsetof(ingot_load_options, trust) + sizeof(int32_t);

LoadOptions read_options(const ingot_load_options* given) {
  if (given == nullptr) return {};
  const auto options = api::read_struct(given, kFirstLoadOptions, "ingot_load_options");
  if (options.verify < INGOT_VERIFY_LAZY || options.verify > INGOT_VERIFY_FULL)
    throw UserError("INGOT-U016", "ingot_load_options.verify is no ingot_verify");
  if (options.trust < INGOT_TRUST_ANY || options.trust > INGOT_TRUST_NONE)
    throw UserError("INGOT-U016", "ingot_load_options.trust is no ingot_trust");
  return {.verify = static_cast<Verify>(options.verify), .trust = static_cast<Trust>(options.trust)};
}

std::shared_ptr<const EngineData> saved_data(const ingot_engine& engine) {
  return engine.engine == nullptr ? engine.data : snapshot(engine.engine);
}

}  // namespace

extern "C" {

ingot_status* ingot_engine_load(const char* path, const ingot_load_options* options, ingot_engine** engine) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(engine, "engine");
    *engine = new ingot_engine(Engine::load(path, read_options(options), api::host()));
  });
}

ingot_status* ingot_engine_load_memory(const void* data, size_t size, void (*release)(void* owner),
                                       void* owner, const ingot_load_options* options,
                                       ingot_engine** engine) {
  return api::guard([&] {
    // Also where loading fails, the memory is given back.
    const auto give_back = [release](void* memory) {
      if (release != nullptr) release(memory);
    };
    const std::shared_ptr<const void> memory(owner, give_back);
    api::require(data, "data");
    api::require(engine, "engine");
    const Bytes bytes(static_cast<const std::byte*>(data), size);
    *engine =
        new ingot_engine(Engine::load(EngineFile::open(bytes, memory), read_options(options), api::host()));
  });
}

ingot_status* ingot_engine_save(const ingot_engine* engine, const char* path) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(path, "path");
    write_engine(*saved_data(*engine), std::filesystem::path(path));
  });
}

ingot_status* ingot_engine_save_memory(const ingot_engine* engine, ingot_text** bytes) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(bytes, "bytes");
    std::string file;
    write_engine(*saved_data(*engine),
                 [&](Bytes part) { file.append(reinterpret_cast<const char*>(part.data()), part.size()); });
    *bytes = api::make_text(std::move(file));
  });
}

ingot_status* ingot_engine_copy(const ingot_engine* engine, ingot_engine** copy) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(copy, "copy");
    *copy =
        engine->engine == nullptr ? new ingot_engine(engine->data) : new ingot_engine(engine->engine->copy());
  });
}

void ingot_engine_free(ingot_engine* engine) { delete engine; }

ingot_status* ingot_verify_file(const char* path) {
  return api::guard([&] {
    api::require(path, "path");
    EngineFile::open(path)->verify_all();
  });
}

}  // extern "C"
