// SPDX-License-Identifier: Apache-2.0
#include "engine/flat_values.h"
#include "engine/flat_write.h"
#include "engine/sections.h"

namespace ingot::core {
namespace {

namespace fb = flatbuffers;

class MetadataWriter {
 public:
  std::vector<std::byte> write(const EngineData& engine, const WeightPlaces& places,
                               const std::vector<uint64_t>& image_offsets,
                               const std::vector<Digest>& source_digests) {
    size_t next = 0;
    const auto images = write_all(builder_, engine.images,
                                  [&](const Image& image) { return write(image, image_offsets[next++]); });
    next = 0;
    const auto weights = write_all(builder_, engine.weights, [&](const WeightData& weight) {
      return write(weight, places.weights[next++]);
    });
    next = 0;
    const auto sources = write_all(builder_, engine.sources, [&](const SourceWeight& source) {
      const size_t index = next++;
      return write(source, source_digests[index], places.sources[index]);
    });
    next = 0;
    const auto states = write_all(builder_, engine.state_values, [&](const Tensor& state) {
      return file::CreateState(builder_, static_cast<uint8_t>(state.dtype), numbers(state.shape),
                               places.states[next++]);
    });
    const auto nodes = write_all(builder_, engine.nodes, [&](const NodeRecord& node) {
      return file::CreateNode(builder_, text(node.name), text(node.op), text(node.source));
    });
    const auto others =
        write_all(builder_, engine.others, [&](const OtherTensor& other) { return write(other); });
    const auto entries = write_all(builder_, engine.metadata, [&](const auto& entry) {
      return file::CreateEntry(builder_, text(entry.first), text(entry.second));
    });
    const std::vector<std::string>& files = engine.weights_files;
    const bool has_one = files.size() == 1;
    builder_.Finish(file::CreateMetadata(
        builder_, text(engine.name), text(engine.origin), text(engine.target),
        static_cast<uint8_t>(engine.weights_form), write(engine.signature), images, weights, sources, states,
        nodes, entries, builder_.CreateVectorOfStrings(engine.devices), others, engine.has_immutable_weights,
        text(has_one ? files[0] : ""), has_one || files.empty() ? 0 : builder_.CreateVectorOfStrings(files),
        write_ranks(engine.weights_ranks)));
    return finished_bytes(builder_);
  }

 private:
  fb::Offset<file::Image> write(const Image& image, uint64_t offset) {
    return file::CreateImage(builder_, text(image.kernel), text(image.target), image.alignment, offset,
                             image.code.size(), raw(image.key));
  }

  fb::Offset<file::Weight> write(const WeightData& weight, uint64_t offset) {
    std::vector<int64_t> shape;
    for (const Dim& dim : weight.type.shape) shape.push_back(dim.constant().value());
    return file::CreateWeight(builder_, text(weight.name), static_cast<uint8_t>(weight.type.dtype),
                              numbers(shape), numbers(layout_numbers(weight.type.layout)),
                              static_cast<uint8_t>(weight.origin.index()), index_of(weight), weight.bytes,
                              offset);
  }

  static uint32_t index_of(const WeightData& weight) {
    if (weight.source() != nullptr) return weight.source()->index;
    return weight.init() == nullptr ? 0 : weight.init()->output;
  }

  fb::Offset<file::Source> write(const SourceWeight& source, const Digest& digest, uint64_t offset) {
    return file::CreateSource(builder_, text(source.name), static_cast<uint8_t>(source.dtype),
                              numbers(source.shape), raw(digest), offset, source.is_saved,
                              write_shards(source.shards), write_digests(source.part_digests));
  }

  // Nothing where there is none: files of engines without ranks stay as they were.
  fb::Offset<fb::Vector<fb::Offset<file::Shard>>> write_shards(const std::vector<ShardAxis>& shards) {
    if (shards.empty()) return 0;
    return write_all(builder_, shards, [&](const ShardAxis& shard) {
      const bool is_even = shard.extents.empty();
      return file::CreateShard(builder_, shard.axis, shard.parts, text(shard.group),
                               is_even ? 0 : numbers(shard.extents));
    });
  }
  fb::Offset<fb::Vector<uint8_t>> write_digests(const std::vector<Digest>& digests) {
    if (digests.empty()) return 0;
    std::vector<uint8_t> all;
    for (const Digest& digest : digests)
      for (const auto byte : digest) all.push_back(static_cast<uint8_t>(byte));
    return builder_.CreateVector(all);
  }
  fb::Offset<fb::Vector<fb::Offset<file::Rank>>> write_ranks(const ShardRanks& ranks) {
    if (ranks.empty()) return 0;
    return write_all(builder_, ranks, [&](const auto& rank) {
      return file::CreateRank(builder_, text(rank.first), rank.second);
    });
  }

  fb::Offset<file::OtherTensor> write(const OtherTensor& other) {
    return file::CreateOtherTensor(builder_, text(other.name), other.tied_to.value_or(kNoId),
                                   other.digest ? raw(*other.digest) : 0);
  }

  fb::Offset<file::Signature> write(const Signature& signature) {
    std::vector<uint32_t> mutated;
    for (const auto& input : signature.mutated_inputs) mutated.push_back(input.value_or(kNoId));
    const auto inputs = write_slots(builder_, signature.inputs),
               outputs = write_slots(builder_, signature.outputs);
    return file::CreateSignature(builder_, builder_.CreateVectorOfStrings(signature.argument_names),
                                 text(signature.input_tree), text(signature.output_tree), inputs, outputs,
                                 builder_.CreateVector(mutated), positions(number_slots(signature.inputs)),
                                 positions(number_slots(signature.outputs)));
  }

  static std::vector<uint32_t> number_slots(const std::vector<CallSlot>& slots) {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < slots.size(); ++i)
      if (is_number(slots[i])) found.push_back(i);
    return found;
  }
  // Nothing where there is none: files of engines without numbers stay as they were.
  fb::Offset<fb::Vector<uint32_t>> positions(const std::vector<uint32_t>& values) {
    return values.empty() ? 0 : builder_.CreateVector(values);
  }

  fb::Offset<fb::String> text(const std::string& value) { return builder_.CreateString(value); }
  fb::Offset<fb::Vector<int64_t>> numbers(const std::vector<int64_t>& values) {
    return builder_.CreateVector(values);
  }
  fb::Offset<fb::Vector<uint8_t>> raw(const Digest& value) {
    return builder_.CreateVector(reinterpret_cast<const uint8_t*>(value.data()), value.size());
  }

  fb::FlatBufferBuilder builder_;
};

}  // namespace

std::vector<std::byte> write_metadata(const EngineData& engine, const WeightPlaces& places,
                                      const std::vector<uint64_t>& images,
                                      const std::vector<Digest>& source_digests) {
  return MetadataWriter().write(engine, places, images, source_digests);
}

}  // namespace ingot::core
