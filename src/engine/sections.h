// SPDX-License-Identifier: Apache-2.0
// Serializing sections, and reading them. Private to src/engine.
#pragma once

#include <vector>

#include "engine/container.h"
#include "engine/engine_data.h"
#include "engine/levels.h"

namespace ingot::core {

constexpr uint64_t kNotKept = UINT64_MAX;

// Offsets of the tables' values in the weights section (kNotKept: not stored), and the contents of that
// section in order.
struct WeightPlaces {
  std::vector<uint64_t> weights, sources, states;
};
struct PlacedLevels {
  std::vector<WeightPlaces> levels;
  struct Piece {
    uint64_t offset;
    Bytes bytes;
  };
  std::vector<Piece> pieces;
  uint64_t length = 0;
};

// Order of first use by `main`; equal addresses are stored once, and so are equal values of several levels.
PlacedLevels place_weights(const Levels& levels);

// Offsets of the kernel binaries in their section.
std::vector<uint64_t> place_images(const std::vector<Image>& images, uint64_t& length);

std::vector<std::byte> write_programs(const EngineData& engine);
std::vector<std::byte> write_metadata(const EngineData& engine, const WeightPlaces& places,
                                      const std::vector<uint64_t>& images,
                                      const std::vector<Digest>& source_digests);

void read_programs(Bytes section, EngineData& engine);

// A byte range of a section.
struct Extent {
  uint64_t offset, length;
  auto operator<=>(const Extent&) const = default;
};
// Fills everything except programs, code and weights; returns the offsets of those, unchecked.
struct ReadMetadata {
  std::vector<uint64_t> weights, sources, states;  // offsets as in WeightPlaces
  std::vector<Extent> used;                        // the parts of the weights section that these occupy
  std::vector<Extent> images;
};
ReadMetadata read_metadata(Bytes section, EngineData& engine);

// Sorted, without duplicates and empty ones.
std::vector<Extent> distinct(std::vector<Extent> extents);

}  // namespace ingot::core
