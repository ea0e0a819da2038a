// SPDX-License-Identifier: Apache-2.0
#include "support/machine_probes.h"

#include <array>

namespace ingot::core {
#if defined(__x86_64__)
namespace {

// 12 independent chains cover the latency of two FMA units. Inline assembly, so that no compiler can change
// the probe. The registers are not initialized: timing does not depend on their values, except for denormals,
// which the product 0 * 0 + 0 avoids.
void run_wide(int64_t rounds) {
  asm volatile(
      "vpxorq %%zmm0, %%zmm0, %%zmm0\n vmovaps %%zmm0, %%zmm1\n vmovaps %%zmm0, %%zmm2\n vmovaps %%zmm0, "
      "%%zmm3\n"
      "vmovaps %%zmm0, %%zmm4\n vmovaps %%zmm0, %%zmm5\n vmovaps %%zmm0, %%zmm6\n vmovaps %%zmm0, %%zmm7\n"
      "vmovaps %%zmm0, %%zmm8\n vmovaps %%zmm0, %%zmm9\n vmovaps %%zmm0, %%zmm10\n vmovaps %%zmm0, %%zmm11\n"
      "vmovaps %%zmm0, %%zmm12\n vmovaps %%zmm0, %%zmm13\n"
      "1:\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm0\n vfmadd231ps %%zmm12, %%zmm13, %%zmm1\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm2\n vfmadd231ps %%zmm12, %%zmm13, %%zmm3\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm4\n vfmadd231ps %%zmm12, %%zmm13, %%zmm5\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm6\n vfmadd231ps %%zmm12, %%zmm13, %%zmm7\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm8\n vfmadd231ps %%zmm12, %%zmm13, %%zmm9\n"
      "vfmadd231ps %%zmm12, %%zmm13, %%zmm10\n vfmadd231ps %%zmm12, %%zmm13, %%zmm11\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "cc");
}

void run_narrow(int64_t rounds) {
  asm volatile(
      "vpxor %%ymm0, %%ymm0, %%ymm0\n vmovaps %%ymm0, %%ymm1\n vmovaps %%ymm0, %%ymm2\n vmovaps %%ymm0, "
      "%%ymm3\n"
      "vmovaps %%ymm0, %%ymm4\n vmovaps %%ymm0, %%ymm5\n vmovaps %%ymm0, %%ymm6\n vmovaps %%ymm0, %%ymm7\n"
      "vmovaps %%ymm0, %%ymm8\n vmovaps %%ymm0, %%ymm9\n vmovaps %%ymm0, %%ymm10\n vmovaps %%ymm0, %%ymm11\n"
      "vmovaps %%ymm0, %%ymm12\n vmovaps %%ymm0, %%ymm13\n"
      "1:\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm0\n vfmadd231ps %%ymm12, %%ymm13, %%ymm1\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm2\n vfmadd231ps %%ymm12, %%ymm13, %%ymm3\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm4\n vfmadd231ps %%ymm12, %%ymm13, %%ymm5\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm6\n vfmadd231ps %%ymm12, %%ymm13, %%ymm7\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm8\n vfmadd231ps %%ymm12, %%ymm13, %%ymm9\n"
      "vfmadd231ps %%ymm12, %%ymm13, %%ymm10\n vfmadd231ps %%ymm12, %%ymm13, %%ymm11\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "cc");
}

// Loads alone. They are inline assembly too: at -O2, GCC 12 turns a loop of sums into one that reads 7 GB/s,
// where these read 130.
void read_wide(const std::byte* begin, const std::byte* end) {
  asm volatile(
      "1:\n prefetcht0 4096(%0)\n prefetcht0 4160(%0)\n prefetcht0 4224(%0)\n prefetcht0 4288(%0)\n"
      "vmovups (%0), %%zmm0\n vmovups 64(%0), %%zmm1\n vmovups 128(%0), %%zmm2\n vmovups 192(%0), "
      "%%zmm3\n"
      "add $256, %0\n cmp %1, %0\n jb 1b\n vzeroupper\n"
      : "+r"(begin)
      : "r"(end)
      : "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory");
}

void read_narrow(const std::byte* begin, const std::byte* end) {
  asm volatile(
      "1:\n prefetcht0 4096(%0)\n prefetcht0 4160(%0)\n prefetcht0 4224(%0)\n prefetcht0 4288(%0)\n"
      "vmovups (%0), %%ymm0\n vmovups 32(%0), %%ymm1\n vmovups 64(%0), %%ymm2\n vmovups 96(%0), %%ymm3\n"
      "vmovups 128(%0), %%ymm4\n vmovups 160(%0), %%ymm5\n vmovups 192(%0), %%ymm6\n vmovups 224(%0), "
      "%%ymm7\n"
      "add $256, %0\n cmp %1, %0\n jb 1b\n vzeroupper\n"
      : "+r"(begin)
      : "r"(end)
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc", "memory");
}

// Registers of sums, of A and of B as the microkernel has them: four products of 16 x 32 by 32 x 16.
void run_matrices(int64_t rounds) {
  alignas(64) std::array<uint8_t, 64> configuration{1};
  for (size_t i = 0; i < 8; ++i) {
    configuration[16 + 2 * i] = 64;  // bytes of a row
    configuration[48 + i] = 16;      // rows
  }
  asm volatile(
      "ldtilecfg %1\n"
      "1:\n"
      "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
      "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
      "dec %0\n jnz 1b\n tilerelease\n"
      : "+r"(rounds)
      : "m"(configuration)
      : "cc", "memory");
}

}  // namespace

double run_multiply_add_probe(CpuFeatures features, int64_t rounds) {
  constexpr double kChains = 12;
  if (!features.has(CpuFeature::kX86V3)) return 0;
  const bool wide = features.has(CpuFeature::kX86V4);
  wide ? run_wide(rounds) : run_narrow(rounds);
  return 2.0 * (wide ? 16 : 8) * kChains * static_cast<double>(rounds);
}

double run_matrix_probe(CpuFeatures features, int64_t rounds) {
  if (!features.has(CpuFeature::kAmxBf16)) return 0;
  run_matrices(rounds);
  return 2.0 * 4 * 16 * 16 * 32 * static_cast<double>(rounds);
}

void run_read_probe(CpuFeatures features, std::span<const std::byte> memory) {
  const std::byte* end = memory.data() + memory.size() / kReadBlock * kReadBlock;
  if (end == memory.data() || !features.has(CpuFeature::kX86V3)) return;
  features.has(CpuFeature::kX86V4) ? read_wide(memory.data(), end) : read_narrow(memory.data(), end);
}

#else
double run_multiply_add_probe(CpuFeatures, int64_t) { return 0; }
double run_matrix_probe(CpuFeatures, int64_t) { return 0; }
void run_read_probe(CpuFeatures, std::span<const std::byte>) {}
#endif

}  // namespace ingot::core
