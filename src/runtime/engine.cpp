// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <mutex>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "engine/levels.h"
#include "engine/program_slice.h"
#include "engine/signature.h"
#include "runtime/initialize.h"
#include "runtime/memory.h"
#include "runtime/prepared_weights.h"
#include "runtime/weight_plan.h"
#include "runtime/weight_verification.h"
#include "support/error.h"
#include "support/text.h"

namespace ingot::core {
namespace {

constexpr size_t kFirstDevice = 1;  // its place_number

void check_trust(const EngineFile& file, const LoadOptions& options) {
  if (options.trust == Trust::kSigned) require_signature(file, options.trusted);
  const auto has_code = [](const EngineData* level) { return !level->images.empty(); };
  if (options.trust == Trust::kNone && std::ranges::any_of(levels_of(file.data()), has_code)) {
    throw UserError("INGOT-U221", "the engine holds native code, which trust=\"none\" does not run",
                    "load it with trust=\"any\" if you trust its origin");
  }
}

std::string note_on_levels(const EngineData& data) {
  if (data.other_levels.empty()) return "";
  return fmt::format(", one of its levels {}", name_levels(levels_of(data)));
}

// Whether a value that `program` reads is the one of the engine's file.
bool reads_stored_values(const EngineData& data, const Program& program, const WeightSet& weights) {
  return std::ranges::any_of(program.buffers, [&](const Buffer& buffer) {
    const auto id = buffer.weight();
    if (!id) return false;
    const WeightData& entry = data.weights[*id];
    const std::byte* value = weights.data[*id].get();
    const FromSource* source = entry.source();
    const bool is_of_source = source != nullptr && value == data.sources[source->index].data.get();
    return value != nullptr && (value == entry.data.get() || is_of_source);
  });
}

}  // namespace

std::shared_ptr<const EngineFile> open_copy(const std::filesystem::path& path, std::string_view cpu) {
  const FileCopy copy = read_copy(path);
  return EngineFile::open(copy.bytes(), copy.memory, Checksums::kVerify, cpu);
}

Engine::~Engine() {
  delete weights_.load();
  delete copies_.load();
}

std::shared_ptr<Engine> Engine::load(const std::filesystem::path& path, const LoadOptions& options,
                                     Host& host) {
  const bool copy = options.memory == FileMemory::kCopy || options.trust == Trust::kSigned;
  return load(copy ? open_copy(path, options.cpu) : EngineFile::open(path, options.cpu), options, host);
}

std::shared_ptr<Engine> Engine::load(std::shared_ptr<const EngineFile> file, const LoadOptions& options,
                                     Host& host) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = &host;
  engine->data_ = {file, &file->data()};
  engine->file_ = std::move(file);
  check_trust(*engine->file_, options);
  engine->verification_ = std::make_shared<WeightVerification>(engine->file_);
  if (options.verify == Verify::kFull) engine->verification_->wait();
  engine->prepare(options.weight_budget, options.gpu);
  if (host.log().wants(LogLevel::kInfo))
    host.log().write(LogLevel::kInfo, fmt::format("opened the engine '{}' for {}{}, {} bytes",
                                                  engine->data_->name, engine->data_->target,
                                                  note_on_levels(*engine->data_), engine->file_->size()));
  return engine;
}

std::shared_ptr<Engine> Engine::create(std::shared_ptr<const EngineData> data, Host& host, int gpu) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = &host;
  engine->data_ = std::move(data);
  engine->prepare({}, gpu);
  return engine;
}

// The same model from the same file, without weights yet.
std::shared_ptr<Engine> Engine::twin(LoadedBackends backends) const {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = host_;
  engine->data_ = data_;
  engine->file_ = file_;
  engine->verification_ = verification_;
  engine->generations_ = generations_;
  engine->number_ = ++*generations_;
  engine->backends_ = std::move(backends);
  engine->make_executables();
  return engine;
}

std::shared_ptr<Engine> Engine::copy() const {
  require_unchanged();
  std::shared_ptr<Engine> engine = twin(backends_);
  engine->set_weights(std::make_shared<WeightSet>(*weights()));
  return engine;
}

std::shared_ptr<Engine> Engine::copy_to(int gpu) const {
  if (gpu == this->gpu() || data_->devices.empty()) return copy();
  require_unchanged();
  std::shared_ptr<Engine> engine = twin(load_backends(*data_, file_.get(), *host_, gpu));
  auto moved = std::make_shared<WeightSet>(*weights());
  move_weights(*data_, backends_, engine->backends_, *moved);
  engine->set_weights(std::move(moved));
  return engine;
}

std::shared_ptr<Engine> Engine::variant(std::shared_ptr<const EngineData> data) const {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = host_;
  engine->data_ = std::move(data);
  engine->backends_ = backends_;
  engine->make_executables();
  engine->set_weights(std::make_shared<WeightSet>(*weights()));
  return engine;
}

void Engine::make_executables() {
  main_ = make_executable(data_->main, *data_, backends_);
  init_ = make_executable(data_->init, *data_, backends_);
}

void Engine::prepare(const WeightBudget& budget, int gpu) {
  backends_ = load_backends(*data_, file_.get(), *host_, gpu);
  for (const LoadedBackend& backend : backends_.all) {
    if (backend.images != nullptr && !backend.images->note.empty())
      host_->log().write(LogLevel::kWarning,
                         fmt::format("engine '{}': {}", data_->name, backend.images->note));
  }
  make_executables();
  auto weights = stored_weights(*data_);
  weights->plan = plan_for(budget, *weights);
  if (needs_init(*data_, *weights) && !find_missing(*data_, data_->init, *weights)) {
    if (weights->plan != nullptr)
      initialize_in_parts(*weights);
    else
      initialize(init_, all_outputs(data_->init), *weights);
  }
  set_weights(std::move(weights));
}

// Results of init have no checksum: what it read of the file is checked again after it ran.
void Engine::initialize(const Executable& init, std::span<const uint32_t> outputs, WeightSet& weights) const {
  require_verified_weights();
  run_init(*data_, init, outputs, backends_, *host_, weights);
  if (file_ && reads_stored_values(*data_, *init.program, weights)) file_->require_intact();
}

// What does not stay on the device leaves it before the next part is computed.
void Engine::initialize_in_parts(WeightSet& weights) const {
  constexpr size_t kPartBytes = size_t{64} << 20;
  std::vector<uint32_t> part;
  size_t bytes = 0;
  const auto finish_part = [&] {
    if (part.empty()) return;
    const ProgramSlice slice = slice_program(data_->init, part);
    initialize(make_executable(slice.program, *data_, backends_), slice.outputs, weights);
    place_weight_set(*data_, data_->main, backends_, weights);
    part.clear();
    bytes = 0;
  };
  for (size_t id = 0; id < data_->weights.size(); ++id) {
    const FromInit* from = data_->weights[id].init();
    if (from == nullptr || has_value(weights, id)) continue;
    part.push_back(from->output);
    bytes += data_->weights[id].bytes;
    if (bytes >= kPartBytes) finish_part();
  }
  finish_part();
}

void Engine::require_verified_weights() const {
  if (verification_) verification_->wait();
}

void Engine::require_unchanged() const {
  if (file_) file_->require_unchanged();
}

std::shared_ptr<const WeightSet> Engine::weights() const {
  const std::scoped_lock lock(weights_mutex_);
  return *weights_.load(std::memory_order_relaxed);
}

void Engine::set_weights(std::shared_ptr<WeightSet> weights) {
  place_weight_set(*data_, data_->main, backends_, *weights);
  weights->missing = find_missing(*data_, data_->main, *weights);
  WeightSet& content = *weights;
  auto next = std::make_unique<const WeightsPointer>(std::move(weights));
  std::unique_ptr<const WeightsPointer> old;  // freed after the lock
  const std::scoped_lock lock(weights_mutex_);
  content.generation = ++*generations_;
  old.reset(weights_.exchange(next.release(), std::memory_order_release));
}

std::shared_ptr<const WeightPlan> Engine::plan_for(const WeightBudget& budget,
                                                   const WeightSet& weights) const {
  if (budget.kind == WeightBudget::Kind::kAll || data_->devices.empty()) return nullptr;
  const size_t total = plan_weights(main_, *data_, SIZE_MAX).total;
  const size_t held = weights.plan != nullptr      ? weights.plan->resident
                      : weights.on_devices.empty() ? 0
                                                   : total;
  const size_t available = held + backends_.memories[kFirstDevice]->free_bytes();
  const size_t bytes = budget.in_bytes(total, available);
  if (bytes >= total) return nullptr;
  auto plan = std::make_shared<WeightPlan>(plan_weights(main_, *data_, bytes));
  const bool is_raised = plan->used() > bytes;
  if (const Log& log = host_->log(); log.wants(is_raised ? LogLevel::kWarning : LogLevel::kInfo))
    log.write(is_raised ? LogLevel::kWarning : LogLevel::kInfo,
              fmt::format("weights: {} of {} stay on the device, the others pass through {} per context{}",
                          format_bytes(plan->resident), format_bytes(total), format_bytes(plan->ring),
                          is_raised ? fmt::format("; the budget of {} is too small for the engine '{}'",
                                                  format_bytes(bytes), data_->name)
                                    : ""));
  return plan;
}

void Engine::set_weight_budget(const WeightBudget& budget) {
  require_verified_weights();
  require_unchanged();
  const std::scoped_lock lock(refit_mutex_);
  auto next = std::make_shared<WeightSet>(*weights());
  next->plan = plan_for(budget, *next);
  set_weights(std::move(next));
}

WeightMemory Engine::weight_memory() const {
  if (data_->devices.empty()) return {};
  const std::shared_ptr<const WeightSet> current = weights();
  const WeightPlan all = plan_weights(main_, *data_, 0);
  const WeightPlan* plan = current->plan.get();
  const size_t resident = plan != nullptr ? plan->resident : all.total,
               ring = plan != nullptr ? plan->ring : 0;
  return {.total = all.total,
          .minimum = all.minimum,
          .budget = resident + ring,
          .resident = resident,
          .ring = ring,
          .available = resident + backends_.memories[kFirstDevice]->free_bytes()};
}

void Engine::refit(const SourceValues& values, Coverage coverage, const ShardRanks& ranks) {
  const std::scoped_lock lock(refit_mutex_);
  auto next = std::make_shared<WeightSet>(*weights());
  next->ranks = ranks_after(*data_, next->ranks, ranks, coverage);
  const NewSources sources = check_sources(*data_, values, coverage, next->ranks);
  require_verified_weights();
  require_unchanged();
  take_sources(*data_, sources, *next);
  compute_after(sources, *next);
  drop_borrowed(*data_, sources, *next);
  next->files.clear();
  set_weights(std::move(next));
}

void Engine::compute_after(const NewSources& sources, WeightSet& weights) const {
  const ProgramSlice init = init_after(*data_, sources, weights);
  if (init.outputs.empty()) return;
  initialize(make_executable(init.program, *data_, backends_), init.outputs, weights);
}

void Engine::refit_from(const WeightsFiles& files, const SourceValues& values, const ShardRanks& ranks) {
  const std::scoped_lock lock(refit_mutex_);
  auto next = std::make_shared<WeightSet>(*weights());
  std::optional<PreparedWeights> prepared;
  if (file_ != nullptr && host_->weights_store() != nullptr) prepared.emplace(file_, host_->weights_store());
  const auto found = prepared ? prepared->find(files, *next) : PreparedWeights::Found::kNothing;
  const NewSources sources = check_files(
      *data_, values, files,
      found == PreparedWeights::Found::kOfTheseFiles ? Digests::kOfStored : Digests::kOfAll, ranks);
  take_sources(*data_, sources, *next);
  if (found == PreparedWeights::Found::kNothing) compute_after(sources, *next);
  drop_borrowed(*data_, sources, *next, KnowsDigests::kYes);
  next->files.clear();
  for (const WeightsFile& file : files) next->files.push_back(file.path);
  next->ranks = ranks_of_parts(*data_, ranks);
  const bool is_new = prepared && found == PreparedWeights::Found::kNothing;
  set_weights(std::move(next));
  if (is_new) keep_prepared(*prepared, files);
}

// Writing takes longer than computing: a load does not wait for it.
void Engine::keep_prepared(const PreparedWeights& prepared, const WeightsFiles& files) const {
  if (host_->weights_policy() == WritePolicy::kReadOnly) return;
  const auto write = [prepared, files, kept = weights()] { prepared.keep(files, *kept); };
  const bool waits = host_->weights_policy() == WritePolicy::kThrough;
  if (waits || !host_->background().add(prepared.bytes(), write)) write();
}

void Engine::require_copy(const Engine& other) const {
  if (other.data_ != data_ || other.gpu() != gpu())
    throw UserError("INGOT-U328", "the weights are not those of a copy of this engine",
                    "copy this engine, refit the copy, and pass that");
}

void Engine::count_copy(const Engine& copy) const {
  if (copy.counted_by_.load(std::memory_order_relaxed) == number_) return;
  const std::weak_ptr<const Engine> added = copy.weak_from_this();
  auto next = std::make_unique<Copies>(1, added);
  std::unique_ptr<const Copies> old;  // freed after the lock
  const std::scoped_lock lock(copies_mutex_);
  if (const Copies* known = copies_.load(std::memory_order_relaxed)) {
    for (const auto& each : *known) {
      const bool is_other = each.owner_before(added) || added.owner_before(each);
      if (is_other && !each.expired()) next->push_back(each);
    }
  }
  old.reset(copies_.exchange(next.release(), std::memory_order_relaxed));
  copy.counted_by_.store(number_, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<const WeightSet>> Engine::weights_of_runs() const {
  std::vector<std::shared_ptr<const WeightSet>> all{weights()};
  std::vector<std::shared_ptr<const Engine>>
      living;  // the last owner of one may be here: freed after the lock
  const std::scoped_lock lock(copies_mutex_);
  if (const Copies* known = copies_.load(std::memory_order_relaxed)) {
    for (const auto& each : *known)
      if (auto copy = each.lock()) all.push_back(living.emplace_back(std::move(copy))->weights());
  }
  return all;
}

void Engine::take_weights(const Engine& copy) {
  require_copy(copy);
  const std::scoped_lock lock(refit_mutex_);
  auto next = std::make_shared<WeightSet>(*copy.weights());
  next->plan = weights()->plan;  // budgets are the engine's own
  set_weights(std::move(next));
}

}  // namespace ingot::core
