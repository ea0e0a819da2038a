// SPDX-License-Identifier: Apache-2.0
// Engine: immutable programs and images plus an atomic pointer to an immutable weight set.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "engine/engine_file.h"
#include "runtime/host.h"

namespace ingot::core {

enum class Verify { kLazy, kFull };
enum class Trust { kAny, kSigned, kNone };  // kNone: only engines without native code run
struct LoadOptions {
  Verify verify = Verify::kLazy;
  Trust trust = Trust::kAny;
};

// What init made, or what the file holds prepared: one pointer a weight id. Old sets die with their last run.
struct WeightSet {
  std::vector<const std::byte*> data;
  std::vector<std::shared_ptr<const void>> owners;
};

class Engine {
 public:
  static std::shared_ptr<Engine> load(const std::filesystem::path& path, const LoadOptions& options,
                                      Host& host);
  static std::shared_ptr<Engine> load(std::shared_ptr<const EngineFile> file, const LoadOptions& options,
                                      Host& host);
  // From a compilation in this process; the weights stay where `data` points.
  static std::shared_ptr<Engine> create(std::shared_ptr<const EngineData> data, Host& host);

  const EngineData& data() const { return *data_; }
  const LoadedImages* images(std::string_view backend) const;
  Host& host() const { return *host_; }
  std::shared_ptr<const EngineFile> file() const { return file_; }

  // Waits until all weights were verified (lazy loads verify them in the background); UserError names the
  // damaged section.
  void require_verified_weights();
  std::shared_ptr<const WeightSet> weights() const;
  // Runs init on new values of all or some source weights (missing ones keep their value where the engine has
  // it), checks names, shapes and dtypes, and swaps the weight set in. Runs in flight keep the old one.
  void refit(const std::map<std::string, TensorView, std::less<>>& sources);

 private:
  Engine() = default;
  struct Verification;
  std::shared_ptr<const EngineData> data_;
  std::shared_ptr<const EngineFile> file_;
  std::map<std::string, std::unique_ptr<LoadedImages>, std::less<>> images_;
  std::shared_ptr<Verification> verification_;
  std::atomic<std::shared_ptr<const WeightSet>> weights_;
  Host* host_ = nullptr;
};

}  // namespace ingot::core
