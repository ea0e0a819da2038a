// SPDX-License-Identifier: Apache-2.0
// What a processor supports, as feature bits: read by CPUID, never derived from the vendor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::core {

// Bit numbers are stored in engine files: never renumber, only append.
enum class CpuFeature : uint32_t {
  kX86V3 = 0,  // AVX2, FMA, BMI2, F16C
  kX86V4 = 1,  // AVX-512 F, BW, CD, DQ, VL
  kAvx512Vnni = 2,
  kAvx512Bf16 = 3,
  kAvx512Fp16 = 4,
  kAmxTile = 5,
  kAmxBf16 = 6,
  kAmxInt8 = 7,
  kAvx512Vbmi = 8,
  kAarch64 = 32,
};

struct CpuFeatures {
  uint64_t bits = 0;
  constexpr bool has(CpuFeature feature) const { return (bits >> static_cast<uint32_t>(feature)) & 1; }
  constexpr void add(CpuFeature feature) { bits |= uint64_t{1} << static_cast<uint32_t>(feature); }
  bool covers(CpuFeatures needed) const { return (needed.bits & ~bits) == 0; }
  bool operator==(const CpuFeatures&) const = default;
};

std::string host_cpu_model();     // "AMD EPYC 9B14 96-Core Processor"; "": it does not say
CpuFeatures host_cpu_features();  // of this processor, as far as the operating system enables it
// Asks the system for those of `wanted` that a process has on request only, which are matrix registers. False
// if it refuses them.
bool request_cpu_features(CpuFeatures wanted);
std::string to_string(CpuFeatures);  // "x86-64-v4+vnni+bf16"
CpuFeatures parse_cpu_features(
    std::string_view);  // the inverse; also "native"; UserError names the nearest word

struct CacheSizes {
  int64_t l1d, l2, l3;  // bytes; 0 where unknown
};
CacheSizes host_cache_sizes();

}  // namespace ingot::core
