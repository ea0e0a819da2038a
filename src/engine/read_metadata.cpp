// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/flat_values.h"
#include "engine/sections.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr uint32_t kMostAlignment = 4096;  // a page
constexpr int64_t kMostParts = 1 << 20;    // of a weight

// Bytes of a dense tensor with untrusted sizes.
uint64_t dense_bytes(DType dtype, const std::vector<int64_t>& shape, const FlatReader& reader) {
  reader.require(shape.size() <= 64, "a tensor has too many dims");
  reader.require(std::ranges::all_of(shape, [](int64_t extent) { return extent >= 0; }),
                 "a tensor has a negative size");
  return Tensor{nullptr, dtype, shape}.bytes();
}

class MetadataReader : FlatReader {
 public:
  MetadataReader() : FlatReader(SectionType::kMetadata) {}

  ReadMetadata read(Bytes section, EngineData& engine) {
    const auto& metadata = root<file::Metadata>(section);
    engine.name = text(metadata.name());
    engine.origin = text(metadata.origin());
    engine.target = text(metadata.target());
    engine.weights_form = enumerator(metadata.weights_form(), WeightsForm::kOriginal);
    engine.devices = texts(metadata.devices());
    if (metadata.signature() != nullptr) engine.signature = signature(*metadata.signature());
    each(metadata.images(), [&](const file::Image& image) { add_image(image, engine); });
    each(metadata.weights(), [&](const file::Weight& weight) { add_weight(weight, engine); });
    each(metadata.sources(), [&](const file::Source& source) { add_source(source, engine); });
    each(metadata.states(), [&](const file::State& state) { add_state(state, engine); });
    each(metadata.nodes(), [&](const file::Node& node) {
      engine.nodes.push_back({text(node.name()), text(node.op()), text(node.source())});
    });
    engine.has_immutable_weights = metadata.immutable_weights();
    engine.weights_files = texts(metadata.weights_files());
    if (std::string file = text(metadata.weights_file()); !file.empty())
      engine.weights_files.insert(engine.weights_files.begin(), std::move(file));
    for (const std::string& file : engine.weights_files) {
      require(!file.empty() && file.find('\0') == std::string::npos,
              "the name of a weights file is empty, or has a zero");
    }
    each(metadata.weights_ranks(), [&](const file::Rank& rank) {
      require(rank.rank() >= 0, "weights are of a negative rank");
      engine.weights_ranks.emplace(text(rank.group()), rank.rank());
    });
    each(metadata.others(), [&](const file::OtherTensor& other) { add_other(other, engine); });
    each(metadata.entries(), [&](const file::Entry& entry) {
      std::string key = text(entry.key());
      require(!key.empty(), "a metadata key is empty");
      const bool is_new = engine.metadata.emplace(std::move(key), text(entry.value())).second;
      require(is_new, "a metadata key appears twice");
    });
    return std::move(result_);
  }

 private:
  Signature signature(const file::Signature& source) const {
    return {.argument_names = texts(source.argument_names()),
            .input_tree = text(source.input_tree()),
            .output_tree = text(source.output_tree()),
            .inputs = slots(source.inputs(), source.number_inputs()),
            .outputs = slots(source.outputs(), source.number_outputs()),
            .mutated_inputs = mutated_inputs(source)};
  }

  std::vector<CallSlot> slots(const FlatSlots* values,
                              const flatbuffers::Vector<uint32_t>* numbers_among) const {
    std::vector<CallSlot> result = read_slots(*this, values);
    for (const uint32_t position : numbers(numbers_among)) {
      require(position < result.size() && is_tensor(result[position]), "a number is not a tensor");
      result[position] = TensorSlot{.is_number = true};
    }
    return result;
  }

  std::vector<std::optional<uint32_t>> mutated_inputs(const file::Signature& source) const {
    std::vector<std::optional<uint32_t>> result;
    for (const uint32_t input : numbers(source.mutated_inputs()))
      result.push_back(input == kNoId ? std::nullopt : std::optional(input));
    return result;
  }

  WeightOrigin origin(const file::Weight& source) const {
    require(source.origin() <= 2, "a weight comes from an unknown origin");
    if (source.origin() == 0) return FromConstant{};
    if (source.origin() == 1) return FromSource{source.index()};
    return FromInit{source.index()};
  }

  Digest digest(const flatbuffers::Vector<uint8_t>* bytes) const {
    const std::vector<uint8_t> values = numbers(bytes);
    Digest result;
    require(values.size() == result.size(), "a digest has a wrong length");
    std::memcpy(result.data(), values.data(), values.size());
    return result;
  }

  void add_image(const file::Image& source, EngineData& engine) {
    Image& image = engine.images.emplace_back();
    image.kernel = text(source.kernel());
    image.target = text(source.target());
    image.alignment = source.alignment();
    require(
        image.alignment >= 64 && image.alignment <= kMostAlignment && std::has_single_bit(image.alignment),
        "an image has a bad alignment");
    image.key = digest(source.key());
    result_.images.push_back({source.offset(), source.length()});
  }

  void add_weight(const file::Weight& source, EngineData& engine) {
    WeightData& weight = engine.weights.emplace_back();
    weight.name = text(source.name());
    weight.type.dtype = dtype(source.dtype());
    weight.type.layout = layout(source.layout());
    dense_bytes(weight.type.dtype, numbers(source.shape()), *this);
    for (const int64_t extent : numbers(source.shape())) weight.type.shape.emplace_back(extent);
    for (const LayoutAxis& axis : weight.type.layout.axes) {
      require(static_cast<size_t>(axis.dim) < weight.type.rank(), "a layout does not fit its shape");
    }
    const auto bytes = storage_bytes(weight.type).constant();
    require(bytes.has_value() && static_cast<uint64_t>(*bytes) == source.bytes(),
            "the size of a weight does not match its type");
    weight.bytes = source.bytes();
    weight.origin = origin(source);
    place(source.offset(), weight.bytes, result_.weights);
  }

  void add_source(const file::Source& source, EngineData& engine) {
    SourceWeight& weight = engine.sources.emplace_back();
    weight.name = text(source.name());
    weight.dtype = dtype(source.dtype());
    weight.shape = numbers(source.shape());
    weight.digest = digest(source.digest());
    weight.is_saved = source.is_saved();
    add_shards(source, weight);
    place(source.offset(), dense_bytes(weight.dtype, weight.shape, *this), result_.sources);
  }

  void add_shards(const file::Source& source, SourceWeight& weight) {
    std::vector<int64_t> whole = weight.shape;
    each(source.shards(), [&](const file::Shard& shard) {
      require(shard.axis() < whole.size(), "a shard divides an axis that its weight does not have");
      require(bit_width(weight.dtype) % 8 == 0, "a shard divides bytes");
      require(shard.parts() > 0 && shard.parts() <= kMostParts, "a shard has too many parts, or none");
      weight.shards.push_back({shard.axis(), shard.parts(), text(shard.group()), extents_of(shard, weight)});
      require(part_count(weight.shards) <= kMostParts, "a weight has too many parts");
      require(!__builtin_mul_overflow(whole[shard.axis()], shard.parts(), &whole[shard.axis()]),
              "the tensor of a shard is too large");
    });
    require(!has_uneven_parts(weight.shards) || weight.shards.size() == 1,
            "a weight with parts of different sizes is divided again");
    dense_bytes(weight.dtype, whole, *this);
    if (source.part_digests() == nullptr) return;
    const auto count = static_cast<size_t>(part_count(weight.shards));
    require(!weight.shards.empty() && source.part_digests()->size() == count * sizeof(Digest),
            "a shard lacks digests, or has too many");
    weight.part_digests.resize(count);
    std::memcpy(weight.part_digests.data(), source.part_digests()->data(), count * sizeof(Digest));
  }

  // The largest is the weight's own extent.
  std::vector<int64_t> extents_of(const file::Shard& shard, const SourceWeight& weight) {
    if (shard.extents() == nullptr) return {};
    std::vector<int64_t> extents = numbers(shard.extents());
    const int64_t largest = weight.shape[shard.axis()];
    require(extents.size() == static_cast<size_t>(shard.parts()) && std::ranges::max(extents) == largest &&
                std::ranges::min(extents) >= 0,
            "the parts of a weight do not fit its shape");
    return extents;
  }

  void add_other(const file::OtherTensor& source, EngineData& engine) {
    OtherTensor other{.name = text(source.name()), .tied_to = {}, .digest = {}};
    require(engine.others.empty() || engine.others.back().name < other.name,
            "the names of other tensors are not in order");
    if (source.tied_to() != kNoId) other.tied_to = source.tied_to();
    require(!other.tied_to || *other.tied_to < engine.sources.size(), "a tensor is tied to none");
    if (source.digest() != nullptr) other.digest = digest(source.digest());
    engine.others.push_back(std::move(other));
  }

  void add_state(const file::State& source, EngineData& engine) {
    Tensor& state = engine.state_values.emplace_back();
    state.dtype = dtype(source.dtype());
    state.shape = numbers(source.shape());
    place(source.offset(), dense_bytes(state.dtype, state.shape, *this), result_.states);
  }

  void place(uint64_t offset, uint64_t bytes, std::vector<uint64_t>& offsets) {
    offsets.push_back(offset);
    if (offset != kNotKept) result_.used.push_back({offset, bytes});
  }

  ReadMetadata result_;
};

}  // namespace

ReadMetadata read_metadata(Bytes section, EngineData& engine) {
  return MetadataReader().read(section, engine);
}

}  // namespace ingot::core
