// SPDX-License-Identifier: Apache-2.0
// Engines: compiled programs with their weights, from files or memory.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ingot/error.h"
#include "ingot/tensor.h"

namespace ingot {

namespace detail {

// As the C API takes paths: on Windows in UTF-8.
inline std::string text_of(const std::filesystem::path& path) {
#if defined(_WIN32)
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
#else
  return path.string();
#endif
}

}  // namespace detail

enum class Verify {
  kLazy = INGOT_VERIFY_LAZY,  // everything but the weights now, the weights before the first run
  kFull = INGOT_VERIFY_FULL,  // everything now
};
enum class Trust {
  kAny = INGOT_TRUST_ANY,        // runs native code of the file, like a shared library
  kSigned = INGOT_TRUST_SIGNED,  // only files that a trusted key signed
  kNone = INGOT_TRUST_NONE,      // no native code
};
enum class FileMemory {
  kMap = INGOT_MEMORY_MAP,    // shared with other processes; the file must not change while it is in use
  kCopy = INGOT_MEMORY_COPY,  // read whole: later changes of the file have no effect
};
struct LoadOptions {
  Verify verify = Verify::kLazy;
  Trust trust = Trust::kAny;
  FileMemory memory = FileMemory::kMap;
  std::string trusted_keys;      // file of the public keys for kSigned; empty: that of INGOT_TRUSTED_KEYS
  bool without_weights = false;  // the file of `weights_file` is not opened: a refit gives the weights
  std::string weight_budget;     // as of Engine::set_weight_budget; empty: all
  int gpu = 0;                   // that an engine for GPUs runs on, as the driver counts them
  std::string rank;              // as of RefitOptions, for weights that come from files
  std::string cpu;               // which of an engine's levels is used; empty: the best that this machine has
};

// An input, output or state of an engine.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::string> dims;  // integers, or expressions over symbols: "B", "128", "2*S"
  std::vector<int64_t> min, max;  // range of each dim; INT64_MAX: no upper bound
};

struct RefitOptions {
  bool partial = false;  // weights without a new value keep theirs
  // Whose parts of sharded weights to read, if their values are whole tensors: "1", or "tp:1,dp:0". Empty:
  // those of the rank that the engine was built for, of the shared groups, or of INGOT_RANK.
  std::string rank;
};

// The tensors of a file, by name. It is mapped, and must not change while this is in use.
class TensorFile {
 public:
  // A .safetensors file; for .pt2 files see open_model_tensors. UserError INGOT-U120 if it cannot be opened,
  // INGOT-U530 if it is damaged.
  static TensorFile open(const std::filesystem::path& path) {
    ingot_tensors* tensors = nullptr;
    detail::check(ingot_open_tensors(detail::text_of(path).c_str(), &tensors));
    return TensorFile(tensors);
  }

  // Takes ownership of a handle of the C API.
  explicit TensorFile(ingot_tensors* handle) : handle_(handle, &ingot_tensors_free) {}

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < ingot_tensors_count(handle()); ++i)
      names.emplace_back(ingot_tensors_name(handle(), i));
    return names;
  }

  ingot_tensors* handle() const { return handle_.get(); }  // still owned by this object

 private:
  std::shared_ptr<ingot_tensors> handle_;
};

// Copies share one engine, which lives until the last of them and of its contexts is destroyed. Thread-safe.
class Engine {
 public:
  // Opens a file. UserError if it cannot be opened (INGOT-U120), is not an engine or is damaged (INGOT-U200
  // to U210, which name the section), was built for another processor (INGOT-U220), is not allowed to run
  // by `options.trust` (INGOT-U221, U222), or leaves its weights to a file with others (U334) or none (U335).
  static Engine load(const std::filesystem::path& path, const LoadOptions& options = {}) {
    const ingot_load_options given = to_c(options);
    ingot_engine* engine = nullptr;
    detail::check(ingot_engine_load(detail::text_of(path).c_str(), &given, &engine));
    return Engine(engine);
  }

  // The same for a file's content in memory, which `owner` keeps alive (null: the caller keeps it alive as
  // long as the engine and its contexts). Bytes aligned to 64 are not copied and must not change, unless
  // `options.memory` is kCopy.
  static Engine load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     const LoadOptions& options = {}) {
    const ingot_load_options given = to_c(options);
    const auto release = [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); };
    auto* held = new std::shared_ptr<const void>(std::move(owner));
    ingot_engine* engine = nullptr;
    detail::check(ingot_engine_load_memory(bytes.data(), bytes.size(), release, held, &given, &engine));
    return Engine(engine);
  }

  // The same for bytes that the engine takes ownership of, such as those of `to_bytes`.
  static Engine load(std::vector<std::byte> bytes, const LoadOptions& options = {}) {
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return load(std::span(*owner), owner, options);
  }

  // Takes ownership of a handle of the C API.
  explicit Engine(ingot_engine* handle) : handle_(handle, &ingot_engine_free) {}

  // The GPU that it runs on; -1: none.
  int gpu() const { return ingot_engine_gpu(handle_.get()); }

  // An independent engine, which shares all memory with this one, including the weights until either is
  // refitted.
  Engine copy() const {
    ingot_engine* engine = nullptr;
    detail::check(ingot_engine_copy(handle(), &engine));
    return Engine(engine);
  }

  // Writes the engine file with the engine's current weights. Readers see the old file or the whole new one.
  // UserError INGOT-U211 if the loaded file has changed.
  void save(const std::filesystem::path& path) const {
    detail::check(ingot_engine_save(handle(), detail::text_of(path).c_str()));
  }

  // The bytes that `save` would write. UserError INGOT-U211 as for `save`.
  std::vector<std::byte> to_bytes() const {
    ingot_text* content = nullptr;
    detail::check(ingot_engine_save_memory(handle(), &content));
    const std::unique_ptr<ingot_text, decltype(&ingot_text_free)> owner(content, &ingot_text_free);
    const auto* first = reinterpret_cast<const std::byte*>(ingot_text_data(content));
    return {first, first + ingot_text_size(content)};
  }

  // The groups of ranks that the collectives name.
  std::vector<std::string> groups() const {
    std::vector<std::string> names;
    while (const char* name = ingot_engine_group_name(handle(), names.size())) names.emplace_back(name);
    return names;
  }
  // In the order in which runs take and return them. Outputs are named by the keys and fields of the model's
  // result ("logits", "past_key_values.0.1"), or "output_0", "output_1" if it has none.
  std::vector<Port> inputs() const { return ports(ingot_engine_input_count(handle()), &ingot_engine_input); }
  std::vector<Port> outputs() const {
    return ports(ingot_engine_output_count(handle()), &ingot_engine_output);
  }
  std::vector<Port> states() const { return ports(ingot_engine_state_count(handle()), &ingot_engine_state); }

  // Strings that were attached when the engine was built; saving, copying and refitting keep them.
  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> entries;
    for (size_t i = 0; i < ingot_engine_metadata_count(handle()); ++i) {
      const char* key = ingot_engine_metadata_key(handle(), i);
      entries.emplace(key, ingot_engine_metadata_value(handle(), key));
    }
    return entries;
  }

  // Names of the model's weights, as `refit` takes them.
  std::vector<std::string> weights() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < ingot_engine_weight_count(handle()); ++i)
      names.emplace_back(ingot_engine_weight_name(handle(), i));
    return names;
  }

  // New values of weights, with the model's dtypes and shapes; they are copied. Only what depends on them is
  // prepared again. All or nothing; runs in flight keep the old values, later runs use the new ones.
  // UserError for a name that the model never had (INGOT-U320), a wrong dtype or shape (INGOT-U321), another
  // weight that is needed too and that the engine does not keep (INGOT-U322), a weight without a new value
  // unless `options.partial` (INGOT-U324), another value of what is part of the engine (INGOT-U325).
  void refit(const std::map<std::string, Tensor>& values, const RefitOptions& options = {}) {
    std::vector<const char*> names;
    std::vector<ingot_tensor> tensors;
    for (const auto& [name, value] : values) {
      names.push_back(name.c_str());
      tensors.push_back(value.view());
    }
    refit(names, tensors, options);
  }
  void refit(const TensorFile& file, const RefitOptions& options = {}) {
    std::vector<const char*> names;
    std::vector<ingot_tensor> tensors;
    for (size_t i = 0; i < ingot_tensors_count(file.handle()); ++i) {
      names.push_back(ingot_tensors_name(file.handle(), i));
      tensors.push_back(*ingot_tensors_value(file.handle(), i));
    }
    refit(names, tensors, options);
  }

  // Takes over the weights of a copy of this engine, which cannot fail: refit the copies of several engines
  // first, and either all of them or none get new weights. UserError INGOT-U328 if it is not a copy.
  void take_weights(const Engine& copy) { detail::check(ingot_engine_take_weights(handle(), copy.handle())); }

  // How much memory of a GPU its weights may take: "all", "auto", "50%" or bytes ("1.5GB"), of which the
  // minimum is taken if it is more. Runs copy the others there ahead of their use, with the same results.
  // UserError INGOT-U336. On the host it does nothing.
  void set_weight_budget(const std::string& budget) {
    detail::check(ingot_engine_set_weight_budget(handle(), budget.c_str()));
  }
  ingot_weight_memory weight_memory() const {
    ingot_weight_memory memory{};
    memory.struct_size = sizeof(memory);
    detail::check(ingot_engine_weight_memory(handle(), &memory));
    return memory;
  }

  // JSON descriptions of the engine's content, and of the model's signature.
  std::string inspect() const { return text(&ingot_engine_inspect); }
  std::string signature() const { return text(&ingot_engine_signature); }

  ingot_engine* handle() const { return handle_.get(); }  // of the C API, still owned by this object

 private:
  void refit(const std::vector<const char*>& names, const std::vector<ingot_tensor>& values,
             const RefitOptions& options) {
    const ingot_refit_options given{.struct_size = sizeof(given),
                                    .partial = options.partial ? 1 : 0,
                                    .release = nullptr,
                                    .owner = nullptr,
                                    .rank = options.rank.empty() ? nullptr : options.rank.c_str()};
    detail::check(ingot_engine_refit(handle(), names.size(), names.data(), values.data(), &given));
  }

  static ingot_load_options to_c(const LoadOptions& options) {
    return {sizeof(ingot_load_options),
            static_cast<int32_t>(options.verify),
            static_cast<int32_t>(options.trust),
            static_cast<int32_t>(options.memory),
            options.trusted_keys.empty() ? nullptr : options.trusted_keys.c_str(),
            options.without_weights ? 1 : 0,
            options.weight_budget.empty() ? nullptr : options.weight_budget.c_str(),
            options.gpu,
            options.rank.empty() ? nullptr : options.rank.c_str(),
            options.cpu.empty() ? nullptr : options.cpu.c_str()};
  }

  std::vector<Port> ports(size_t count,
                          ingot_status* (*get)(const ingot_engine*, size_t, ingot_port*)) const {
    std::vector<Port> result(count);
    for (size_t i = 0; i < count; ++i) {
      ingot_port port{};
      port.struct_size = sizeof(port);
      detail::check(get(handle(), i, &port));
      result[i] = {port.name,
                   static_cast<DType>(port.dtype),
                   {port.dims, port.dims + port.rank},
                   {port.min, port.min + port.rank},
                   {port.max, port.max + port.rank}};
    }
    return result;
  }

  std::string text(ingot_status* (*get)(const ingot_engine*, ingot_text**)) const {
    ingot_text* text = nullptr;
    detail::check(get(handle(), &text));
    return detail::take_text(text);
  }

  std::shared_ptr<ingot_engine> handle_;
};

// Counters and memory of engines by name, and of the process's cache, as text for Prometheus: see
// ingot_metrics_text. UserError INGOT-U002 for a name that is not UTF-8.
inline std::string metrics(const std::map<std::string, Engine>& engines = {}) {
  std::vector<const ingot_engine*> handles;
  std::vector<const char*> names;
  for (const auto& [name, engine] : engines) {
    names.push_back(name.c_str());
    handles.push_back(engine.handle());
  }
  ingot_text* text = nullptr;
  detail::check(ingot_metrics_text(handles.size(), handles.data(), names.data(), &text));
  return detail::take_text(text);
}

// Checks every byte of an engine file. UserError names the damaged section.
inline void verify_file(const std::filesystem::path& path) {
  detail::check(ingot_verify_file(detail::text_of(path).c_str()));
}

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
