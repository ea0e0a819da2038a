// SPDX-License-Identifier: Apache-2.0
#include "compiler/engine_entry.h"

#include <bit>
#include <map>

#include "cache/nearest_entry.h"
#include "compiler/assemble.h"
#include "compiler/byte_parts.h"
#include "compiler/key.h"
#include "engine/engine_file.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::chrono::minutes kPatience{10};  // with a process that builds and hangs

// Weights go by their names into an engine: each must have one of its own.
std::map<std::string_view, const aten::WeightSource*> weights_by_name(const aten::Imported& model) {
  std::map<std::string_view, const aten::WeightSource*> weights;
  for (const aten::WeightSource& weight : model.weights) weights.emplace(weight.name, &weight);
  return weights;
}

void write_report(ByteWriter& writer, const BuildReport& report) {
  const std::vector<NodePrecision>& precisions = report.nodes.precisions;
  for (const size_t number : {report.kernels, report.distinct_kernels, report.slow.size(), precisions.size()})
    writer.number(number);
  writer.number(static_cast<uint64_t>(report.arena_bytes));
  writer.number(static_cast<uint64_t>(report.arena_lower_bound));
  for (const SlowNode& node : report.slow) {
    for (const std::string& text : {node.node, node.op, node.source, node.reason}) writer.text(text);
    for (const double time : {node.own_ns, node.peer_ns}) writer.number(std::bit_cast<uint64_t>(time));
  }
  for (const NodePrecision& node : precisions) {
    for (const std::string& text : {node.node, node.op, node.source, node.choice.reason}) writer.text(text);
    for (const DType dtype : {node.choice.operands, node.choice.weight})
      writer.number(static_cast<uint64_t>(dtype));
  }
}

bool read_report(ByteReader& reader, BuildReport& report) {
  report.kernels = reader.number();
  report.distinct_kernels = report.reused_kernels = reader.number();
  const uint64_t slow = reader.number(), precisions = reader.number();
  report.arena_bytes = static_cast<int64_t>(reader.number());
  report.arena_lower_bound = static_cast<int64_t>(reader.number());
  for (uint64_t i = 0; i < slow && reader.is_whole(); ++i) {
    SlowNode& node = report.slow.emplace_back();
    for (std::string* text : {&node.node, &node.op, &node.source, &node.reason}) *text = reader.text();
    for (double* time : {&node.own_ns, &node.peer_ns}) *time = std::bit_cast<double>(reader.number());
  }
  for (uint64_t i = 0; i < precisions && reader.is_whole(); ++i) {
    NodePrecision& node = report.nodes.precisions.emplace_back();
    for (std::string* text : {&node.node, &node.op, &node.source, &node.choice.reason}) *text = reader.text();
    for (DType* dtype : {&node.choice.operands, &node.choice.weight})
      *dtype = static_cast<DType>(reader.number());
  }
  return reader.is_whole();
}

}  // namespace

EngineEntry::EngineEntry(const aten::Program& program, const aten::Imported& model, const Backend& backend,
                         const CompileOptions& options, const CompileHooks& hooks, std::string_view tactics)
    : model_(model),
      hooks_(hooks),
      use_(hooks.cache_use),
      structure_(engine_key(model, backend, options, tactics)) {
  // A build that is watched or measured is done; so is one that checks what it makes.
  if (!use_.has_stores() || options.verify_kernels || !options.share_kernels || hooks.dump) return;
  is_possible_ = weights_by_name(model).size() == model.weights.size();
  if (is_possible_) key_ = make_key(EntryKind::kEngine, structure_ + engine_binding(program, model));
}

std::shared_ptr<EngineData> EngineEntry::find(BuildReport& report) {
  if (!is_possible_ || !use_.reuse) return nullptr;
  if (auto found = look_up(report)) return found;
  if (use_.keep && wait_for_others()) {
    if (hooks_.log) hooks_.log("waited for another process that builds the same engine");
    if (auto found = look_up(report)) return found;
  }
  if (hooks_.log && use_.disk != nullptr)
    hooks_.log("no engine was found: " + explain_miss(*use_.disk, key_));
  return nullptr;
}

// First for processes of this machine, then for other machines: one process of each asks the server.
bool EngineEntry::wait_for_others() {
  const auto wait = [&] { hooks_.phases != nullptr ? hooks_.phases->report(0, 1) : void(); };
  const bool adds = use_.disk != nullptr && use_.disk_policy != WritePolicy::kReadOnly;
  if (adds && use_.disk->is_usable()) {
    leases_->folder.emplace(use_.disk->folder(), key_.digest, kPatience, wait);
    if (leases_->folder->has_waited()) return true;
  }
  bool has_waited = false;
  for (const UsedTier& used : use_.tiers) {
    if (used.policy == WritePolicy::kReadOnly) continue;
    EntryTier::Waited waited = used.tier->lease(key_.digest, kPatience, wait, use_.report());
    if (waited.lease != nullptr) leases_->tiers.push_back(std::move(waited.lease));
    has_waited |= waited.has_waited;
  }
  return has_waited;
}

std::shared_ptr<EngineData> EngineEntry::look_up(BuildReport& report) const {
  const Blob entry = use_.find(key_).bytes;
  return entry == nullptr ? nullptr : open(entry, report);
}

void EngineEntry::keep(const EngineData& engine, const BuildReport& report) const {
  if (!is_possible_ || !use_.keep) return;
  ByteWriter writer;
  write_report(writer, report);
  std::vector<std::byte> file;
  write_engine(without_weights(engine),
               [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
  writer.part(file);
  use_.put(key_, std::make_shared<const std::vector<std::byte>>(writer.take()), leases_);
}

// An entry that cannot be read is one that another Ingot wrote under our key: the build goes on without it.
std::shared_ptr<EngineData> EngineEntry::open(const Blob& entry, BuildReport& report) const {
  ByteReader reader(*entry);
  BuildReport stored = report;
  const bool has_report = read_report(reader, stored);
  const Bytes file = reader.part();
  if (!has_report || !reader.has_read_all()) return nullptr;
  try {
    auto engine = std::make_shared<EngineData>(EngineFile::open(file, entry)->data());
    if (!give_weights(*engine)) return nullptr;
    report = std::move(stored);
    report.is_from_cache = true;
    return engine;
  } catch (const UserError&) {
    return nullptr;
  }
}

bool EngineEntry::give_weights(EngineData& engine) const {
  const auto weights = weights_by_name(model_);
  for (SourceWeight& source : engine.sources) {
    const auto found = weights.find(source.name);
    if (found == weights.end()) return false;
    const Tensor dense = dense_values(*found->second);
    if (dense.dtype != source.dtype || dense.shape != source.shape) return false;
    source.data = dense.data;
  }
  for (WeightData& weight : engine.weights) {
    if (const FromSource* from = weight.source()) weight.data = engine.sources[from->index].data;
  }
  return true;
}

}  // namespace ingot::core
