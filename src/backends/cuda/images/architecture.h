// SPDX-License-Identifier: Apache-2.0
// What code for GPUs is built for: "sm_80" runs on 8.0 and, as PTX, on all later ones with as much shared
// memory per block; "sm_90a" on 9.0 alone; "compute_90", which is PTX alone, on 9.0 and all later ones.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::core::cuda {

struct Architecture {
  int number = 0;      // 90: compute capability 9.0
  bool exact = false;  // "sm_90a"
  bool ptx = false;    // "compute_90"
};

constexpr int kFirstArchitecture = 80;  // kernels use cp.async and bf16
constexpr int kFirstToOverlap = 90;     // programmatic dependent launch

// Null if it is not one that Ingot builds for.
inline std::optional<Architecture> parse_architecture(std::string_view text) {
  constexpr std::string_view kReal = "sm_", kVirtual = "compute_";
  const bool ptx = text.starts_with(kVirtual);
  if (!ptx && !text.starts_with(kReal)) return std::nullopt;
  const std::string_view digits = text.substr((ptx ? kVirtual : kReal).size());
  Architecture result{.ptx = ptx};
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, result.number);
  const std::string_view suffix(end, static_cast<size_t>(last - end));
  result.exact = suffix == "a" && !ptx;
  if (error != std::errc() || result.number < kFirstArchitecture) return std::nullopt;
  if (!suffix.empty() && !result.exact) return std::nullopt;
  return result;
}

// Bytes of shared memory that kernels for it may ask for per block: CUDA C++ Programming Guide, technical
// specifications. For PTX what every later GPU has.
inline int64_t shared_limit(const Architecture& architecture) {
  constexpr int64_t kKilobyte = 1024, kLeast = 99 * kKilobyte;
  const int number = architecture.number;
  if (architecture.ptx) return kLeast;
  if (number == 80 || number == 87) return 163 * kKilobyte;
  return number < 90 || number >= 120 ? kLeast : 227 * kKilobyte;
}

}  // namespace ingot::core::cuda
