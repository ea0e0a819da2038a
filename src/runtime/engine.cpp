// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/initialize.h"
#include "runtime/memory.h"
#include "runtime/weight_verification.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void check_trust(const EngineData& data, Trust trust) {
  if (trust == Trust::kSigned) {
    throw UserError("INGOT-U222",
                    "trust=\"signed\" refuses every engine: this version of Ingot has no signatures yet",
                    "load it with trust=\"any\" if you trust its origin");
  }
  if (trust == Trust::kNone && !data.images.empty()) {
    throw UserError("INGOT-U221", "the engine holds native code, which trust=\"none\" does not run",
                    "load it with trust=\"any\" if you trust its origin");
  }
}

size_t find_source(const EngineData& data, const std::string& name) {
  const auto found = std::ranges::find(data.sources, name, &SourceWeight::name);
  if (found != data.sources.end()) return static_cast<size_t>(found - data.sources.begin());
  throw UserError("INGOT-U320", fmt::format("the engine has no weight '{}'", name),
                  "constants and integer buffers cannot be refitted: rebuild the engine");
}

void check_source(const SourceWeight& source, const TensorView& value) {
  if (source.dtype == value.dtype && source.shape == value.shape) return;
  throw UserError("INGOT-U321", fmt::format("weight '{}' is {}[{}], but the new value is {}[{}]", source.name,
                                            name(source.dtype), fmt::join(source.shape, ","),
                                            name(value.dtype), fmt::join(value.shape, ",")));
}

bool init_reads(const EngineData& data, const std::set<size_t>& sources) {
  return std::ranges::any_of(data.init.buffers, [&](const Buffer& buffer) {
    if (buffer.storage != Storage::kWeight) return false;
    const FromSource* source = data.weights[buffer.index].source();
    return source != nullptr && sources.contains(source->index);
  });
}

bool reads_weight(const Program& program, size_t id) {
  const auto reads = [&](const Buffer& buffer) {
    return buffer.storage == Storage::kWeight && buffer.index == id;
  };
  return std::ranges::any_of(program.buffers, reads) ||
         std::ranges::any_of(program.nested, [&](const Program& nested) { return reads_weight(nested, id); });
}

// Values that only init reads are kept only by engines that were loaded with them; others keep the digest.
void drop_unkept(const EngineData& data, const std::set<size_t>& changed, WeightSet& weights) {
  for (const size_t i : changed) {
    const bool kept = data.sources[i].data != nullptr;
    weights.refitted[i] = kept ? Digest{} : digest_of(data.sources[i], weights.sources[i].get());
    if (!kept) weights.sources[i] = nullptr;
  }
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const bool came = data.weights[id].data != nullptr || data.weights[id].init() != nullptr;
    if (!came && !reads_weight(data.main, id)) weights.data[id] = nullptr;
  }
}

// For a device, a value on the host is enough: it is copied when needed.
bool is_given(const EngineData& data, const Buffer& buffer, const WeightSet& weights) {
  if (weights.data[buffer.index] != nullptr) return true;
  const bool placed =
      buffer.place.kind == Place::Kind::kDevice && weights.on_devices.size() == data.devices.size();
  return placed && weights.on_devices[buffer.place.index][buffer.index] != nullptr;
}

// The first weight id without value that `program` reads, or -1.
int32_t find_missing(const EngineData& data, const Program& program, const WeightSet& weights) {
  for (const Buffer& buffer : program.buffers) {
    const bool is_weight = buffer.storage == Storage::kWeight || buffer.storage == Storage::kConstant;
    const bool absent = is_weight && !is_given(data, buffer, weights) && data.weights[buffer.index].bytes > 0;
    if (absent) return static_cast<int32_t>(buffer.index);
  }
  for (const Program& nested : program.nested) {
    if (const int32_t missing = find_missing(data, nested, weights); missing >= 0) return missing;
  }
  return -1;
}

}  // namespace

std::shared_ptr<const EngineFile> open_copy(const std::filesystem::path& path) {
  const FileCopy copy = read_copy(path);
  return EngineFile::open(copy.bytes(), copy.memory);
}

Engine::~Engine() { delete weights_.load(); }

std::shared_ptr<Engine> Engine::load(const std::filesystem::path& path, const LoadOptions& options,
                                     Host& host) {
  const bool copy = options.memory == FileMemory::kCopy;
  return load(copy ? open_copy(path) : EngineFile::open(path), options, host);
}

std::shared_ptr<Engine> Engine::load(std::shared_ptr<const EngineFile> file, const LoadOptions& options,
                                     Host& host) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = &host;
  engine->data_ = {file, &file->data()};
  engine->file_ = std::move(file);
  check_trust(*engine->data_, options.trust);
  engine->verification_ = std::make_shared<WeightVerification>(engine->file_);
  if (options.verify == Verify::kFull) engine->verification_->wait();
  engine->prepare();
  if (host.log().wants(LogLevel::kInfo))
    host.log().write(LogLevel::kInfo,
                     fmt::format("opened the engine '{}' for {}, {} bytes", engine->data_->name,
                                 engine->data_->target, engine->file_->size()));
  return engine;
}

std::shared_ptr<Engine> Engine::create(std::shared_ptr<const EngineData> data, Host& host) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = &host;
  engine->data_ = std::move(data);
  engine->prepare();
  return engine;
}

std::shared_ptr<Engine> Engine::copy() const {
  require_unchanged();
  std::shared_ptr<Engine> engine(new Engine);
  engine->host_ = host_;
  engine->data_ = data_;
  engine->file_ = file_;
  engine->verification_ = verification_;
  engine->make_executables();
  engine->set_weights(std::make_shared<WeightSet>(*weights()));
  return engine;
}

void Engine::make_executables() {
  backends_ = load_backends(*data_, file_.get(), *host_);
  main_ = make_executable(data_->main, *data_, backends_);
  init_ = make_executable(data_->init, *data_, backends_);
}

void Engine::prepare() {
  make_executables();
  auto weights = stored_weights(*data_);
  if (needs_init(*data_, *weights) && find_missing(*data_, data_->init, *weights) < 0) initialize(*weights);
  set_weights(std::move(weights));
}

// Results of init have no checksum: its inputs are checked again after it ran.
void Engine::initialize(WeightSet& weights) const {
  require_verified_weights();
  run_init(*data_, init_, backends_, *host_, weights);
  if (file_) file_->require_intact();
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
  place_weights_on_devices(*data_, data_->main, backends_, *weights);
  weights->missing = find_missing(*data_, data_->main, *weights);
  WeightSet& content = *weights;
  auto next = std::make_unique<const WeightsPointer>(std::move(weights));
  std::unique_ptr<const WeightsPointer> old;  // freed after the lock
  const std::scoped_lock lock(weights_mutex_);
  content.generation = ++generation_;
  old.reset(weights_.exchange(next.release(), std::memory_order_release));
}

void Engine::refit(const SourceValues& sources) {
  require_verified_weights();
  require_unchanged();
  const std::scoped_lock lock(refit_mutex_);
  auto next = std::make_shared<WeightSet>(*weights());
  std::set<size_t> changed;
  for (const auto& [name, value] : sources) {
    const size_t index = find_source(*data_, name);
    check_source(data_->sources[index], value);
    next->sources[index] = to_dense(value).data;
    changed.insert(index);
  }
  apply_sources(*data_, *next);
  if (init_reads(*data_, changed)) initialize(*next);
  drop_unkept(*data_, changed, *next);
  set_weights(std::move(next));
}

}  // namespace ingot::core
