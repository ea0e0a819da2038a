// SPDX-License-Identifier: Apache-2.0
#include "compiler/engine_entry.h"

#include <bit>

#include "cache/nearest_entry.h"
#include "compiler/byte_parts.h"
#include "compiler/engine_names_entry.h"
#include "compiler/key.h"
#include "engine/engine_file.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::chrono::minutes kPatience{10};  // with a process that builds and hangs

// Nodes of reports, as calls of the model; the others stay what they are.
template <typename ReportedNode>
void write_node(ByteWriter& writer, const ReportedNode& node, const ModelNames& names) {
  const std::optional<uint32_t> call = names.find_call(node.node, node.source);
  writer.number(call.value_or(kNoId));
  for (const std::string& text : {call ? "" : node.node, node.op, call ? "" : node.source}) writer.text(text);
}

template <typename ReportedNode>
void read_node(ByteReader& reader, ReportedNode& node, const ModelNames& names) {
  const uint64_t call = reader.number();
  for (std::string* text : {&node.node, &node.op, &node.source}) *text = reader.text();
  if (call >= names.calls().size()) return;
  node.node = names.calls()[call].name;
  node.source = names.calls()[call].source;
}

void write_report(ByteWriter& writer, const BuildReport& report, const ModelNames& names) {
  const std::vector<NodePrecision>& precisions = report.nodes.precisions;
  for (const size_t number : {report.kernels, report.distinct_kernels, report.slow.size(), precisions.size()})
    writer.number(number);
  writer.number(static_cast<uint64_t>(report.arena_bytes));
  writer.number(static_cast<uint64_t>(report.arena_lower_bound));
  for (const SlowNode& node : report.slow) {
    write_node(writer, node, names);
    writer.text(node.reason);
    for (const double time : {node.own_ns, node.peer_ns}) writer.number(std::bit_cast<uint64_t>(time));
  }
  for (const NodePrecision& node : precisions) {
    write_node(writer, node, names);
    writer.text(node.choice.reason);
    for (const DType dtype : {node.choice.operands, node.choice.weight})
      writer.number(static_cast<uint64_t>(dtype));
  }
}

bool read_report(ByteReader& reader, BuildReport& report, const ModelNames& names) {
  report.kernels = reader.number();
  report.distinct_kernels = report.reused_kernels = reader.number();
  const uint64_t slow = reader.number(), precisions = reader.number();
  report.arena_bytes = static_cast<int64_t>(reader.number());
  report.arena_lower_bound = static_cast<int64_t>(reader.number());
  for (uint64_t i = 0; i < slow && reader.is_whole(); ++i) {
    SlowNode& node = report.slow.emplace_back();
    read_node(reader, node, names);
    node.reason = reader.text();
    for (double* time : {&node.own_ns, &node.peer_ns}) *time = std::bit_cast<double>(reader.number());
  }
  for (uint64_t i = 0; i < precisions && reader.is_whole(); ++i) {
    NodePrecision& node = report.nodes.precisions.emplace_back();
    read_node(reader, node, names);
    node.choice.reason = reader.text();
    for (DType* dtype : {&node.choice.operands, &node.choice.weight})
      *dtype = static_cast<DType>(reader.number());
  }
  return reader.is_whole();
}

// The part of an entry that may be large: with immutable_weights, all weights.
size_t constant_bytes(const EngineData& engine) {
  size_t bytes = 0;
  for (const WeightData& weight : engine.weights) bytes += weight.is_constant() ? weight.bytes : 0;
  return bytes;
}

std::string text_of(const std::string& structure, const ModelNames& names, const CompileOptions& options) {
  return structure + names.division() + (names_decide(options) ? names.call_names() : "");
}

}  // namespace

EngineEntry::EngineEntry(const std::string& structure, const NamedModel& model, const CompileOptions& options,
                         const CompileHooks& hooks)
    : model_(model), hooks_(hooks), use_(hooks.cache_use) {
  const bool has_memory = hooks.cache != nullptr && hooks.cache->memory().size().capacity > 0;
  // A build that is watched or measured is done; so is one that checks what it makes.
  is_possible_ = (has_memory || use_.has_stores()) && (use_.reuse || use_.keep) && !options.verify_kernels &&
                 options.share_kernels && !hooks.dump;
  if (is_possible_) key_ = make_key(EntryKind::kEngine, text_of(structure, model.names, options));
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
  const Blob entry = hooks_.cache != nullptr ? hooks_.cache->find(key_, use_) : use_.find(key_).bytes;
  return entry == nullptr ? nullptr : open(entry, report);
}

void EngineEntry::keep(const AssembledEngine& engine, const BuildReport& report) const {
  if (!is_possible_ || !use_.keep) return;
  const bool has_memory = hooks_.cache != nullptr && hooks_.cache->has_room(constant_bytes(*engine.data));
  if (!has_memory && !use_.has_stores()) return;
  ByteWriter writer;
  write_report(writer, report, model_.names);
  write_origins(writer, engine.origins);
  std::vector<std::byte> file;
  write_engine(without_weights(*engine.data),
               [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
  writer.part(file);
  const auto entry = std::make_shared<const std::vector<std::byte>>(writer.take());
  if (hooks_.cache != nullptr) hooks_.cache->keep(key_, entry);
  use_.put(key_, entry, leases_);
}

// An entry that cannot be read is one that another Ingot wrote under our key: the build goes on without it.
std::shared_ptr<EngineData> EngineEntry::open(const Blob& entry, BuildReport& report) const {
  ByteReader reader(*entry);
  BuildReport stored = report;
  const bool has_report = read_report(reader, stored, model_.names);
  const EngineOrigins origins = read_origins(reader);
  const Bytes file = reader.part();
  if (!has_report || !reader.has_read_all()) return nullptr;
  try {
    auto engine = std::make_shared<EngineData>(EngineFile::open(file, entry)->data());
    if (!fit(origins, *engine, model_)) return nullptr;
    bind_engine(*engine, origins, model_);
    report = std::move(stored);
    report.is_from_cache = true;
    return engine;
  } catch (const UserError&) {
    return nullptr;
  }
}

}  // namespace ingot::core
