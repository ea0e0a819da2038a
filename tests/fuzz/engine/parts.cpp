// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/engine/parts.h"

#include <algorithm>

#include "support/error.h"
#include "tests/engine/seal.h"

namespace ingot::core::fuzz {
namespace {

constexpr uint64_t kMostBytes = 1 << 18;  // of the images or weights of a sealed file

Bytes metadata_of(Bytes input) {
  const size_t length = std::to_integer<size_t>(input[1]) | std::to_integer<size_t>(input[2]) << 8;
  return input.subspan(kPrefix, std::min(length, input.size() - kPrefix));
}

Bytes programs_of(Bytes input) { return input.subspan(kPrefix + metadata_of(input).size()); }

// Zeros up to the end of the last extent.
std::vector<std::byte> zeros_for(const std::vector<Extent>& extents) {
  uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.offset < kMostBytes && extent.length < kMostBytes)
      end = std::max(end, extent.offset + extent.length);
  }
  return std::vector<std::byte>(end);
}

// `bytes` aligned for FlatBuffers: after the prefix they are at odd addresses.
std::vector<std::byte> aligned(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

std::vector<std::byte> seal_parts(Bytes input) {
  std::vector<std::vector<std::byte>> contents(kSectionCount);
  contents[1] = aligned(metadata_of(input));
  contents[2] = aligned(programs_of(input));
  try {
    EngineData engine;
    const ReadMetadata metadata = read_metadata(contents[1], engine);
    contents[4] = zeros_for(metadata.images);
    contents[5] = zeros_for(metadata.used);
  } catch (const Error&) {  // the file is rejected for its metadata then
  }
  return testing::seal(std::move(contents));
}

std::optional<Parts> read_parts(Bytes input) {
  try {
    Parts parts;
    const ReadMetadata metadata = read_metadata(aligned(metadata_of(input)), parts.engine);
    read_programs(aligned(programs_of(input)), parts.engine);
    parts.places.weights = metadata.weights;
    parts.places.sources = metadata.sources;
    parts.places.states = metadata.states;
    for (size_t i = 0; i < metadata.images.size(); ++i) {
      parts.images.push_back(metadata.images[i].offset);
      parts.engine.images[i].code.resize(std::min(metadata.images[i].length, kMostBytes));
    }
    return parts;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::byte> write_parts(const Parts& parts) {
  std::vector<Digest> digests;
  for (const SourceWeight& source : parts.engine.sources) digests.push_back(source.digest);
  const auto metadata = write_metadata(parts.engine, parts.places, parts.images, digests);
  const auto programs = write_programs(parts.engine);
  std::vector<std::byte> input = {std::byte{kSealed}, static_cast<std::byte>(metadata.size()),
                                  static_cast<std::byte>(metadata.size() >> 8)};
  input.insert(input.end(), metadata.begin(), metadata.end());
  input.insert(input.end(), programs.begin(), programs.end());
  return input;
}

}  // namespace ingot::core::fuzz
