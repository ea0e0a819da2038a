// SPDX-License-Identifier: Apache-2.0
// Engine: immutable programs and kernel binaries, and a replaceable pointer to an immutable weight set.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_file.h"
#include "runtime/counters.h"
#include "runtime/executable.h"
#include "runtime/host.h"
#include "runtime/refit.h"
#include "runtime/weight_budget.h"
#include "runtime/weight_set.h"
#include "support/fork.h"
#include "types/tensor.h"

namespace ingot::core {

enum class Verify { kLazy, kFull };
// kSigned: only engines that one of `trusted` signed. kNone: only engines without native code.
enum class Trust { kAny, kSigned, kNone };
enum class FileMemory { kMap, kCopy };  // kCopy: later changes of the file have no effect
struct LoadOptions {
  Verify verify = Verify::kLazy;
  Trust trust = Trust::kAny;
  FileMemory memory = FileMemory::kMap;  // a file whose signature counts is always copied
  std::vector<PublicKey> trusted;
  WeightBudget weight_budget;
  int gpu = 0;      // that an engine for GPUs runs on, and has its weights on
  std::string cpu;  // the level that is used, of an engine with several; empty: the best that runs here
};

// Reads the whole file instead of mapping it. Errors as of EngineFile::open.
std::shared_ptr<const EngineFile> open_copy(const std::filesystem::path& path, std::string_view cpu = {});

class PreparedWeights;
class WeightVerification;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> load(const std::filesystem::path& path, const LoadOptions& options,
                                      Host& host);
  static std::shared_ptr<Engine> load(std::shared_ptr<const EngineFile> file, const LoadOptions& options,
                                      Host& host);
  // From a compilation in this process; `data` keeps owning the weights. Runs init if it has not run.
  static std::shared_ptr<Engine> create(std::shared_ptr<const EngineData> data, Host& host, int gpu = 0);
  ~Engine();
  // An independent engine: shares all memory with this one, the weights until either is refitted.
  std::shared_ptr<Engine> copy() const;
  // The same on another GPU, with its own copy of the weights there.
  std::shared_ptr<Engine> copy_to(int gpu) const;
  // The same with other launches: `data` differs from this engine's in those of its main program, which use
  // its kernel binaries.
  std::shared_ptr<Engine> variant(std::shared_ptr<const EngineData> data) const;

  const EngineData& data() const { return *data_; }
  const Executable& main() const { return main_; }
  const LoadedBackends& backends() const { return backends_; }
  int gpu() const { return backends_.gpu; }  // of an engine for GPUs: the one that it runs on
  Host& host() const { return *host_; }
  std::shared_ptr<const EngineFile> file() const { return file_; }  // null if created here
  EngineCounters& counters() { return counters_; }                  // of its contexts, which end before it
  const EngineCounters& counters() const { return counters_; }

  // Waits until all weights are verified (lazy loads verify them in the background); UserError names the
  // damaged section.
  void require_verified_weights() const;
  // UserError INGOT-U211 if the file is found to have changed since it was loaded (EngineFile).
  void require_unchanged() const;
  std::shared_ptr<const WeightSet> weights() const;
  // UserError INGOT-U328 if `other` is neither this engine nor a copy of it, on the same device.
  void require_copy(const Engine& other) const;
  // A run of this engine reads the weights of a copy.
  void count_copy(const Engine& copy) const;
  // All that its runs read: its own, and those of copies that still exist.
  std::vector<std::shared_ptr<const WeightSet>> weights_of_runs() const;
  // Runs the part of init that new values of source weights affect, and swaps in the new weight set; runs in
  // flight keep the old one. UserError as of check_sources, and INGOT-U322 if a value that init needs is
  // neither kept nor given. On failure nothing changes.
  void refit(const SourceValues& values, Coverage coverage, const ShardRanks& ranks = {});
  // A refit with all values of some files, which must be those that the engine names by their digests
  // (UserError INGOT-U334). What init computes of them is kept in the host's cache on disk, if there is one,
  // and mapped from there. Until another refit, the engine is saved with the files' names instead of values.
  void refit_from(const WeightsFiles& files, const SourceValues& values, const ShardRanks& ranks = {});
  // Takes over the weights of a copy of this engine: a refit of several engines that cannot fail halfway.
  // UserError INGOT-U328 if it is not a copy.
  void take_weights(const Engine& copy);

  // Which weights stay on the device. A budget below the minimum becomes that. Later runs copy the others
  // there; results do not change. Without a device nothing happens.
  void set_weight_budget(const WeightBudget& budget);
  WeightMemory weight_memory() const;

 private:
  Engine() = default;
  void make_executables();
  std::shared_ptr<Engine> twin(LoadedBackends backends) const;
  void prepare(const WeightBudget& budget, int gpu);
  void initialize_in_parts(WeightSet& weights) const;
  std::shared_ptr<const WeightPlan> plan_for(const WeightBudget& budget, const WeightSet& weights) const;
  void initialize(const Executable& init, std::span<const uint32_t> outputs, WeightSet& weights) const;
  void set_weights(std::shared_ptr<WeightSet> weights);
  void compute_after(const NewSources& sources, WeightSet& weights) const;
  void keep_prepared(const PreparedWeights& prepared, const WeightsFiles& files) const;

  std::shared_ptr<const EngineData> data_;
  std::shared_ptr<const EngineFile> file_;
  LoadedBackends backends_;
  Executable main_, init_;
  std::shared_ptr<WeightVerification> verification_;
  using WeightsPointer = std::shared_ptr<const WeightSet>;
  mutable ForkSafeMutex weights_mutex_;  // guards the pointer only
  ForkSafeMutex refit_mutex_;            // one refit at a time
  std::atomic<const WeightsPointer*> weights_{
      nullptr};  // replaced atomically, so that a forked child can read it
  std::shared_ptr<std::atomic<uint64_t>> generations_ = std::make_shared<std::atomic<uint64_t>>(0);
  using Copies = std::vector<std::weak_ptr<const Engine>>;
  mutable ForkSafeMutex copies_mutex_;                  // guards the pointer only
  mutable std::atomic<const Copies*> copies_{nullptr};  // that runs read the weights of; null: none
  uint64_t number_ = 0;                                 // unique among the engine and its copies
  static constexpr uint64_t kNoEngine = UINT64_MAX;
  mutable std::atomic<uint64_t> counted_by_{
      kNoEngine};  // the number of the last engine that counted this copy
  Host* host_ = nullptr;
  EngineCounters counters_;
};

}  // namespace ingot::core
