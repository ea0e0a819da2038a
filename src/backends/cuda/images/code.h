// SPDX-License-Identifier: Apache-2.0
// The code of an image: a cubin, or PTX, or a cubin with PTX for later GPUs after it.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace ingot::core::cuda {

// In front of a cubin that PTX follows: as long as images are aligned.
struct BothHeader {
  std::array<char, 8> magic{'c', 'u', 'b', 'i', 'n', '+', 'p', 't'};
  uint64_t cubin_bytes = 0;
  std::array<char, 48> padding{};
};

struct ImageCode {
  std::span<const std::byte> cubin, ptx;  // PTX ends with a zero; either may be empty
};

inline std::vector<std::byte> with_ptx(std::span<const std::byte> cubin, std::span<const std::byte> ptx) {
  BothHeader header;
  header.cubin_bytes = cubin.size();
  std::vector<std::byte> code(sizeof(header));
  std::memcpy(code.data(), &header, sizeof(header));
  code.insert(code.end(), cubin.begin(), cubin.end());
  code.insert(code.end(), ptx.begin(), ptx.end());
  return code;
}

// Without a cubin or PTX if it is neither.
inline ImageCode read_image(std::span<const std::byte> code, bool is_ptx) {
  const auto ends_with_zero = [](std::span<const std::byte> text) {
    return !text.empty() && text.back() == std::byte{0};
  };
  if (is_ptx) return {{}, ends_with_zero(code) ? code : std::span<const std::byte>()};
  BothHeader header;
  const std::array<char, 8> magic = header.magic;
  if (code.size() < sizeof(header)) return {code, {}};
  std::memcpy(&header, code.data(), sizeof(header));
  if (header.magic != magic) return {code, {}};
  const auto rest = code.subspan(sizeof(header));
  if (header.cubin_bytes > rest.size() || !ends_with_zero(rest)) return {};
  return {rest.first(header.cubin_bytes), rest.subspan(header.cubin_bytes)};
}

}  // namespace ingot::core::cuda
