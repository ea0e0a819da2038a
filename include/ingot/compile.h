// SPDX-License-Identifier: Apache-2.0
// Building engines from models. Requires the library ingot; the other headers only need ingot_runtime.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ingot/build.h"
#include "ingot/engine.h"
#include "ingot/error.h"

namespace ingot {

// A cache of kernels for the builds that name it, and that only: bounded, and gone with the session. Builds
// without a session share the cache of the process.
class Session {
 public:
  explicit Session(uint64_t cache_bytes) {
    const ingot_session_options options{.struct_size = sizeof(options), .cache_bytes = cache_bytes};
    ingot_session* session = nullptr;
    detail::check(ingot_session_create(&options, &session));
    handle_.reset(session);
  }
  // JSON, see ingot_cache_stats.
  std::string cache_stats() const {
    ingot_text* text = nullptr;
    detail::check(ingot_cache_stats(handle_.get(), &text));
    return detail::take_text(text);
  }
  ingot_session* handle() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(ingot_session* session) const { ingot_session_free(session); }
  };
  std::unique_ptr<ingot_session, Free> handle_;
};

// See ingot_cache_wait. True if nothing waits any more.
inline bool wait_for_cache(std::chrono::milliseconds patience) {
  return ingot_cache_wait(patience.count()) != 0;
}

// How far a build is.
struct Progress {
  std::string phase;
  size_t done, total;        // work items of this phase
  double remaining_seconds;  // an estimate; negative while unknown
};

struct CompileOptions {
  // By name, as strings: {{"optimization_level", "3"}}; `compile_options()` lists all. Default: none.
  std::map<std::string, std::string> values;
  // Called between work items; returning false cancels the build (UserError INGOT-U010). Default: none.
  std::function<bool(const Progress&)> progress;
  // Strings that the engine stores for you (`Engine::metadata`), by key. UserError INGOT-U021 for an empty
  // key or text that is not UTF-8. Default: none.
  std::map<std::string, std::string> metadata;
  // Whose cache the build uses; it outlives the build. Default: that of the process.
  const Session* session = nullptr;
  // Where the build also looks for kernels and engines, and keeps them: of ingot/build.h; it outlives the
  // build. Default: nowhere but in memory and on disk.
  const ingot_cache_store* store = nullptr;
};

// An option of a build.
struct OptionInfo {
  std::string name, type, default_value, summary;
};

inline std::vector<OptionInfo> compile_options() {
  std::vector<OptionInfo> rows;
  for (size_t i = 0; i < ingot_option_count(); ++i) {
    ingot_option_info info{};
    info.struct_size = sizeof(info);
    detail::check(ingot_option_describe(i, &info));
    rows.push_back({info.name, info.type, info.default_value, info.summary});
  }
  return rows;
}

// Builds an engine from a .pt2 file of torch.export (torch 2.11 to 2.15). `report`, if given, receives JSON:
// phases with their seconds, kernels, memory plan. UserError: a bad file or option. UnsupportedError: a node
// that Ingot cannot run, with its name and its line in the model.
inline Engine compile(const std::filesystem::path& model, const CompileOptions& options = {},
                      std::string* report = nullptr) {
  struct Call {
    const CompileOptions& options;
    std::exception_ptr failure;
  } call{options, nullptr};
  const auto forward = [](void* user, const char* phase, size_t done, size_t total,
                          double remaining_seconds) -> int32_t {
    auto& own = *static_cast<Call*>(user);
    try {
      return own.options.progress({phase, done, total, remaining_seconds}) ? 1 : 0;
    } catch (...) {  // exceptions must not cross the C API
      own.failure = std::current_exception();
      return 0;
    }
  };
  std::vector<ingot_option> rows;
  for (const auto& [name, value] : options.values) rows.push_back({name.c_str(), value.c_str()});
  std::vector<ingot_option> metadata;
  for (const auto& [key, value] : options.metadata) metadata.push_back({key.c_str(), value.c_str()});
  const ingot_build_options given{.struct_size = sizeof(ingot_build_options),
                                  .options = rows.data(),
                                  .option_count = rows.size(),
                                  .progress = options.progress ? +forward : nullptr,
                                  .user = &call,
                                  .metadata = metadata.data(),
                                  .metadata_count = metadata.size(),
                                  .output = nullptr,
                                  .session = options.session == nullptr ? nullptr : options.session->handle(),
                                  .store = options.store,
                                  .quiet = nullptr};
  ingot_engine* engine = nullptr;
  ingot_text* text = nullptr;
  ingot_status* status =
      ingot_build_pt2(detail::text_of(model).c_str(), &given, &engine, report == nullptr ? nullptr : &text);
  if (call.failure) {
    ingot_status_free(status);
    std::rethrow_exception(call.failure);
  }
  detail::check(status);
  Engine built(engine);
  if (report != nullptr) *report = detail::take_text(text);
  return built;
}

// The tensors of a .pt2 or .safetensors file, for Engine::refit. UserError as of TensorFile::open, and
// INGOT-U5xx for archives.
inline TensorFile open_model_tensors(const std::filesystem::path& path) {
  ingot_tensors* tensors = nullptr;
  detail::check(ingot_open_model_tensors(detail::text_of(path).c_str(), &tensors));
  return TensorFile(tensors);
}

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
