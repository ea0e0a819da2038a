// SPDX-License-Identifier: Apache-2.0
// The input of the engine target: a byte for the mode, and in mode kSealed the metadata and programs
// sections, which are put into a file whose checksums are right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/sections.h"

namespace ingot::core::fuzz {

enum Mode : uint8_t {
  kVerified,
  kUnverified,
  kSealed
};  // a whole file, checksums compared or not; parts of one
constexpr size_t kPrefix = 3;  // mode, and the length of the metadata

// A file around the sections of a kSealed input, its images and weights zeros where the metadata wants them.
std::vector<std::byte> seal_parts(Bytes input);

// The parts as data, to be changed and written back; none where they cannot be read.
struct Parts {
  EngineData engine;
  WeightPlaces places;
  std::vector<uint64_t> images;  // offsets
};
std::optional<Parts> read_parts(Bytes input);
std::vector<std::byte> write_parts(const Parts& parts);

}  // namespace ingot::core::fuzz
