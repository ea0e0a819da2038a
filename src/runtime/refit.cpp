// SPDX-License-Identifier: Apache-2.0
#include "runtime/refit.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "runtime/initialize.h"
#include "runtime/memory.h"
#include "support/digest_all.h"
#include "support/error.h"
#include "support/parallel.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

// Without an owner: valid as long as the caller's memory.
std::shared_ptr<const std::byte> pointer_to(const OwnedView& value) { return {value.owner, value.view.data}; }

bool is_aligned(const TensorView& view) {
  const auto element = static_cast<uintptr_t>(std::max(1, bit_width(view.dtype) / 8));
  return reinterpret_cast<uintptr_t>(view.data) % element == 0;
}

bool have_equal_bytes(const TensorView& a, const TensorView& b) {
  if (a.data == b.data && a.strides == b.strides) return true;
  const Tensor first = to_dense(a), second = to_dense(b);
  return std::equal(first.data.get(), first.data.get() + first.bytes(), second.data.get());
}

class SourceChecks {
 public:
  SourceChecks(const EngineData& data, const ShardRanks& ranks, UnknownRanks unknown)
      : data_(data), ranks_(ranks), unknown_(unknown) {
    for (size_t i = 0; i < data.sources.size(); ++i) sources_.emplace(data.sources[i].name, i);
    for (const OtherTensor& other : data.others) others_.emplace(other.name, &other);
  }

  NewSources run(const SourceValues& values, Coverage coverage) {
    for (const auto& [name, value] : values) add(name, value);
    if (coverage == Coverage::kAll) require_all();
    return std::move(found_);
  }

 private:
  void require_all() const {
    std::vector<size_t> missing;
    for (size_t i = 0; i < data_.sources.size(); ++i) {
      if (!found_.contains(i) && data_.sources[i].is_saved) missing.push_back(i);
    }
    if (missing.empty()) return;
    const size_t others = missing.size() - 1;
    throw UserError(
        "INGOT-U324",
        fmt::format(
            "there is no new value of '{}'{}", data_.sources[missing[0]].name,
            others == 0 ? "" : fmt::format(", nor of {} other weight{}", others, others == 1 ? "" : "s")),
        "pass all weights, or partial=True (--partial) to keep the values of the others");
  }

  void add(const std::string& name, const OwnedView& value) {
    if (const auto source = sources_.find(name); source != sources_.end())
      return set(source->second, name, value);
    const auto other = others_.find(name);
    if (other == others_.end()) refuse_unknown(name);
    if (const auto tied = other->second->tied_to) return set(*tied, name, value);
    const auto& digest = other->second->digest;
    if (digest && *digest != tensor_digest(value.view)) refuse_constant(name);
  }

  void set(size_t index, const std::string& name, const OwnedView& given) {
    const SourceWeight& source = data_.sources[index];
    const OwnedView own = own_part(source, name, given);
    const TensorView& value = own.view;
    if (source.dtype != value.dtype || source.shape != value.shape)
      throw UserError("INGOT-U321", fmt::format("weight '{}' is {}, but the new value is {}", name,
                                                to_string(source.dtype, source.shape),
                                                to_string(value.dtype, value.shape)));
    const auto [entry, is_new] = found_.emplace(index, own);
    const std::string& first = names_.emplace(index, name).first->second;
    if (is_new || have_equal_bytes(entry->second.view, value)) return;
    throw UserError(
        "INGOT-U326",
        fmt::format("the model uses one tensor as '{}' and '{}', but their new values differ", first, name),
        "pass one value for both; a model whose weights are no longer tied has to be built again");
  }

  // A value that is a part already stays as it is.
  OwnedView own_part(const SourceWeight& source, const std::string& name, const OwnedView& given) const {
    if (has_uneven_parts(source.shards)) return own_uneven_part(source, name, given);
    const bool is_whole = !source.shards.empty() && given.view.shape != source.shape &&
                          given.view.shape == whole_shape(source.shape, source.shards);
    if (!is_whole) return given;
    const int64_t part = part_number(source.shards, ranks_);
    if (part == kNoPart) refuse_whole(source, name, "is the whole tensor");
    return {part_of(given.view, source.shards, part), given.owner};
  }

  // The program needs to know whose part it is: the shape of the largest fits more ranks than one.
  OwnedView own_uneven_part(const SourceWeight& source, const std::string& name,
                            const OwnedView& given) const {
    if (source.dtype != given.view.dtype) return given;
    const int64_t part = part_number(source.shards, ranks_);
    if (part == kNoPart && unknown_ == UnknownRanks::kFilledUp) return given;
    if (part == kNoPart) refuse_whole(source, name, "is a tensor, or a part of one");
    const std::vector<int64_t> own_shape = part_shape(source.shape, source.shards, part);
    OwnedView own = given;
    if (own.view.shape != own_shape && own.view.shape == whole_shape(source.shape, source.shards))
      own.view = part_of(own.view, source.shards, part);
    if (own.view.shape != own_shape)
      throw UserError("INGOT-U321", fmt::format("weight '{}' is {} on rank {}, but the new value is {}", name,
                                                to_string(source.dtype, own_shape), part,
                                                to_string(own.view.dtype, own.view.shape)));
    if (own_shape == source.shape) return own;
    const Tensor filled = filled_up(own.view, source.shape);
    return {filled.view(), filled.data};
  }

  [[noreturn]] void refuse_whole(const SourceWeight& source, const std::string& name,
                                 std::string_view what) const {
    std::string why = "this process does not say which rank it is";
    for (const ShardAxis& shard : source.shards) {
      const auto rank = ranks_.find(shard.group);
      if (rank != ranks_.end() && rank->second >= shard.parts)
        why = fmt::format("rank {} is none of the {} of group '{}'", rank->second, shard.parts, shard.group);
    }
    throw UserError(
        "INGOT-U357",
        fmt::format("the value of '{}' {}, of which each rank has a part, and {}", name, what, why),
        "give the rank (`rank`), join a group first, or set INGOT_RANK");
  }

  [[noreturn]] void refuse_unknown(const std::string& name) const {
    throw UserError("INGOT-U320", fmt::format("the engine has no weight '{}'", name),
                    "pass the weights of the model that the engine was built from");
  }

  [[noreturn]] void refuse_constant(const std::string& name) const {
    if (data_.has_immutable_weights)
      throw UserError(
          "INGOT-U327",
          fmt::format("the engine was built with immutable_weights, and its value of '{}' is another one",
                      name),
          "build it without immutable_weights, or build it again with the new weights");
    throw UserError(
        "INGOT-U325",
        fmt::format("'{}' is part of the engine: integer tensors and initial states cannot be refitted",
                    name),
        "leave it out if the old value is right, or build the engine again");
  }

  const EngineData& data_;
  const ShardRanks& ranks_;
  UnknownRanks unknown_;
  std::map<std::string_view, size_t> sources_;
  std::map<std::string_view, const OtherTensor*> others_;
  NewSources found_;
  std::map<size_t, std::string> names_;  // that their values were given for, the first ones
};

void collect_weights(const Program& program, std::set<size_t>& ids) {
  for (const Buffer& buffer : program.buffers) {
    if (const auto* weight = buffer.as<WeightStorage>()) ids.insert(weight->id);
  }
  for (const Program& nested : program.nested) collect_weights(nested, ids);
}

// Sources whose values stay: those that the engine was made with, and those that `main` uses unchanged.
std::vector<bool> kept_sources(const EngineData& data) {
  std::vector<bool> kept;
  const bool is_original = data.weights_form == WeightsForm::kOriginal;
  for (const SourceWeight& source : data.sources) kept.push_back(is_original || source.data != nullptr);
  std::set<size_t> read;
  collect_weights(data.main, read);
  for (const size_t id : read) {
    if (const FromSource* source = data.weights[id].source()) kept[source->index] = true;
  }
  return kept;
}

const Digest& expected_digest(const SourceWeight& source, const ShardRanks& ranks) {
  const int64_t part = part_number(source.shards, ranks);
  const bool has_parts = !source.part_digests.empty() && part != kNoPart;
  return has_parts ? source.part_digests[static_cast<size_t>(part)] : source.digest;
}

// "the weights of 'a.safetensors' and 3 other files"
std::string names_of(const WeightsFiles& files) {
  const std::string first = files.empty() ? "" : to_text(files.front().path);
  if (files.size() < 2) return fmt::format("the weights of '{}'", first);
  return fmt::format("the weights of '{}' and {} other file{}", first, files.size() - 1,
                     files.size() == 2 ? "" : "s");
}

}  // namespace

NewSources check_sources(const EngineData& data, const SourceValues& values, Coverage coverage,
                         const ShardRanks& ranks, UnknownRanks unknown) {
  return SourceChecks(data, ranks, unknown).run(values, coverage);
}

ShardRanks ranks_after(const EngineData& data, const ShardRanks& known, const ShardRanks& given,
                       Coverage coverage) {
  ShardRanks ranks = ranks_of_parts(data, given);
  if (coverage == Coverage::kAll) return ranks;
  for (const auto& [group, rank] : known) {
    const auto [entry, is_new] = ranks.emplace(group, rank);
    if (entry->second != rank)
      throw UserError("INGOT-U358",
                      fmt::format("the engine has the weights of rank {} of group '{}', and the new ones are "
                                  "of rank {}",
                                  rank, group, entry->second),
                      "give new values of all weights, or of the same rank");
  }
  return ranks;
}

NewSources check_files(const EngineData& data, const SourceValues& values, const WeightsFiles& files,
                       Digests digests, const ShardRanks& ranks, UnknownRanks unknown) {
  NewSources found = check_sources(data, values, Coverage::kSome, ranks, unknown);
  const auto require_same = [&](bool is_same, const SourceWeight& source, std::string_view what) {
    if (is_same) return;
    throw UserError("INGOT-U334", fmt::format(fmt::runtime(what), names_of(files), source.name),
                    "bring the old file back, build the engine again, or give the weights when the engine is "
                    "loaded (`weights`, --weights)");
  };
  for (size_t i = 0; i < data.sources.size(); ++i)
    require_same(found.contains(i) || !data.sources[i].is_saved, data.sources[i],
                 "{} lack '{}', which the engine takes from there");
  const std::vector<bool> kept = kept_sources(data);
  std::vector<std::pair<size_t, OwnedView>> all(found.begin(), found.end());
  if (digests == Digests::kOfStored) std::erase_if(all, [&](const auto& each) { return !kept[each.first]; });
  for_each_parallel(all.size(), [&](size_t i) {
    const SourceWeight& source = data.sources[all[i].first];
    const TensorView& value = all[i].second.view;
    const Tensor copy = is_dense(value) ? Tensor{} : to_dense(value);
    const std::byte* bytes = copy.data != nullptr ? copy.data.get() : value.data;
    require_same(digest_of(source, bytes) == expected_digest(source, ranks), source,
                 "{} have another value of '{}' than the engine was built with");
  });
  return found;
}

void take_sources(const EngineData& data, const NewSources& values, WeightSet& weights) {
  const std::vector<bool> kept = kept_sources(data);
  std::vector<size_t> to_copy;
  for (const auto& [index, value] : values) {
    const bool stays = kept[index] && value.owner == nullptr;
    const bool is_usable = !stays && is_dense(value.view) && is_aligned(value.view);
    if (is_usable) weights.sources[index] = pointer_to(value);
    if (!is_usable) to_copy.push_back(index);
  }
  for_each_parallel(to_copy.size(), [&](size_t i) {
    const TensorView& value = values.at(to_copy[i]).view;
    const std::shared_ptr<std::byte> copy = allocate_memory(source_bytes(data.sources[to_copy[i]]));
    copy_dense(value, copy.get());
    weights.sources[to_copy[i]] = copy;
  });
  apply_sources(data, weights);
}

ProgramSlice init_after(const EngineData& data, const NewSources& values, const WeightSet& weights) {
  std::set<size_t> changed;
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const FromSource* source = data.weights[id].source();
    if (source != nullptr && values.contains(source->index)) changed.insert(id);
  }
  const std::vector<uint32_t> affected = outputs_that_read(data.init, changed);
  std::vector<uint32_t> outputs;
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const FromInit* from = data.weights[id].init();
    if (from == nullptr) continue;
    const bool is_missing = !has_value(weights, id) && data.weights[id].bytes > 0;
    const auto can_be_made = [&] {
      return find_missing(data, slice_program(data.init, {{from->output}}).program, weights) == std::nullopt;
    };
    if (is_missing ? can_be_made() : std::ranges::binary_search(affected, from->output))
      outputs.push_back(from->output);
  }
  return slice_program(data.init, outputs);
}

void drop_borrowed(const EngineData& data, const NewSources& values, WeightSet& weights, KnowsDigests known) {
  const std::vector<bool> kept = kept_sources(data);
  std::vector<size_t> dropped, hashed;
  std::vector<Bytes> bytes;
  for (const auto& [index, value] : values) {
    const SourceWeight& source = data.sources[index];
    const std::byte* const now = weights.sources[index].get();
    const bool is_known = known == KnowsDigests::kYes && source.shards.empty();
    weights.refitted[index] = is_known && !kept[index] ? source.digest : Digest{};
    if (kept[index]) continue;
    dropped.push_back(index);
    if (is_known || now == nullptr) continue;
    hashed.push_back(index);
    bytes.emplace_back(now, source_bytes(source));
  }
  const std::vector<Digest> digests = digest_all(bytes);
  for (size_t i = 0; i < hashed.size(); ++i) weights.refitted[hashed[i]] = digests[i];
  for (const size_t index : dropped) weights.sources[index] = nullptr;
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const FromSource* source = data.weights[id].source();
    if (source != nullptr && !kept[source->index] && values.contains(source->index))
      weights.data[id] = nullptr;
  }
}

}  // namespace ingot::core
