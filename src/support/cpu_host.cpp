// SPDX-License-Identifier: Apache-2.0
// The features of this processor: CPUID on x86, the kernel's tables elsewhere.
#include "support/cpu_features.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <unistd.h>
#endif

namespace ingot::core {

#if defined(__x86_64__)

namespace {

struct Registers {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers result;  // zeros for a leaf that the processor lacks
  __get_cpuid_count(leaf, subleaf, &result.a, &result.b, &result.c, &result.d);
  return result;
}

constexpr bool all_of(uint64_t value, uint64_t bits) { return (value & bits) == bits; }
constexpr unsigned bit(int number) { return 1U << number; }

// The register states that the operating system saves at a context switch.
uint64_t enabled_states() {
  constexpr int kOsXsave = 27;
  if ((cpuid(1, 0).c & bit(kOsXsave)) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

constexpr uint64_t kYmmState = 0x6;       // SSE, AVX
constexpr uint64_t kZmmState = 0xE6;      // and opmask, upper halves, upper registers
constexpr uint64_t kTileState = 0x60000;  // AMX configuration and data

bool has_v3(const Registers& basic, const Registers& extended) {
  const unsigned basic_bits = bit(12) | bit(22) | bit(28) | bit(29);  // FMA, MOVBE, AVX, F16C
  const unsigned extended_bits = bit(3) | bit(5) | bit(8);            // BMI1, AVX2, BMI2
  const unsigned lzcnt = bit(5);
  return all_of(basic.c, basic_bits) && all_of(extended.b, extended_bits) &&
         all_of(cpuid(0x80000001, 0).c, lzcnt);
}

void add_avx512(CpuFeatures& features, const Registers& extended, const Registers& more) {
  const unsigned v4 = bit(16) | bit(17) | bit(28) | bit(30) | bit(31);  // F, DQ, CD, BW, VL
  if (!all_of(extended.b, v4)) return;
  features.add(CpuFeature::kX86V4);
  if (all_of(extended.c, bit(11))) features.add(CpuFeature::kAvx512Vnni);
  if (all_of(more.a, bit(5))) features.add(CpuFeature::kAvx512Bf16);
  if (all_of(extended.d, bit(23))) features.add(CpuFeature::kAvx512Fp16);
  if (all_of(extended.c, bit(1))) features.add(CpuFeature::kAvx512Vbmi);
}

void add_amx(CpuFeatures& features, const Registers& extended) {
  if (!all_of(extended.d, bit(24))) return;
  features.add(CpuFeature::kAmxTile);
  if (all_of(extended.d, bit(22))) features.add(CpuFeature::kAmxBf16);
  if (all_of(extended.d, bit(25))) features.add(CpuFeature::kAmxInt8);
}

CpuFeatures read_features() {
  CpuFeatures features;
  const uint64_t states = enabled_states();
  const Registers extended = cpuid(7, 0);
  if (!all_of(states, kYmmState) || !has_v3(cpuid(1, 0), extended)) return features;
  features.add(CpuFeature::kX86V3);
  if (all_of(states, kZmmState)) add_avx512(features, extended, cpuid(7, 1));
  if (all_of(states, kTileState)) add_amx(features, extended);
  return features;
}

}  // namespace

std::string host_cpu_model() {
  constexpr unsigned kFirst = 0x80000002, kLast = 0x80000004;  // of the leaves with 16 characters each
  std::string name;
  for (unsigned leaf = kFirst; leaf <= kLast; ++leaf) {
    const Registers part = cpuid(leaf, 0);
    name.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  name.resize(std::min(name.find('\0'), name.size()));
  const size_t begin = std::min(name.find_first_not_of(' '), name.size());
  return name.substr(begin, name.find_last_not_of(' ') + 1 - begin);
}

// Asked once: in a virtual machine each CPUID leaves it, for tens of microseconds.
CpuFeatures host_cpu_features() {
  static const CpuFeatures features = read_features();
  return features;
}

CacheSizes host_cache_sizes() {
  constexpr unsigned kIntelLeaf = 4;
  constexpr unsigned kAmdLeaf = 0x8000001D;  // same format as Intel's leaf 4
  constexpr unsigned kInstructions = 2;
  CacheSizes sizes{};
  const unsigned leaf = (cpuid(kAmdLeaf, 0).a & 0x1F) != 0 ? kAmdLeaf : kIntelLeaf;
  for (unsigned i = 0;; ++i) {
    const Registers cache = cpuid(leaf, i);
    const unsigned type = cache.a & 0x1F;
    if (type == 0) return sizes;
    if (type == kInstructions) continue;
    const int64_t ways = (cache.b >> 22) + 1;
    const int64_t partitions = ((cache.b >> 12) & 0x3FF) + 1;
    const int64_t line = (cache.b & 0xFFF) + 1;
    const int64_t bytes = ways * partitions * line * (int64_t{cache.c} + 1);
    const unsigned level = (cache.a >> 5) & 7;
    if (level == 1) sizes.l1d = bytes;
    if (level == 2) sizes.l2 = bytes;
    if (level == 3) sizes.l3 = bytes;
  }
}

#else

std::string host_cpu_model() { return {}; }

CpuFeatures host_cpu_features() {
  CpuFeatures features;
#if defined(__aarch64__)
  features.add(CpuFeature::kAarch64);
#endif
  return features;
}

CacheSizes host_cache_sizes() {
  const auto known = [](long size) { return size > 0 ? static_cast<int64_t>(size) : 0; };
  return {known(::sysconf(_SC_LEVEL1_DCACHE_SIZE)), known(::sysconf(_SC_LEVEL2_CACHE_SIZE)),
          known(::sysconf(_SC_LEVEL3_CACHE_SIZE))};
}

#endif

}  // namespace ingot::core
