// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/relocate.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "support/error.h"

namespace ingot::core::cpu {
namespace {

constexpr uint64_t kPlace = 64;

// The word at kPlace, which was `word`, after it refers to what is `distance` bytes from there.
uint32_t relocated(uint16_t machine, uint64_t type, int64_t distance, uint32_t word = 0) {
  std::array<std::byte, 128> code{};
  std::memcpy(code.data() + kPlace, &word, sizeof(word));
  relocate(code, machine, type, kPlace, static_cast<int64_t>(kPlace) + distance);
  std::memcpy(&word, code.data() + kPlace, sizeof(word));
  return word;
}

uint32_t on_aarch64(uint64_t type, int64_t distance, uint32_t word) {
  return relocated(EM_AARCH64, type, distance, word);
}

// Instructions as `llvm-mc --triple=aarch64 --show-encoding` writes them.
TEST(Relocate, InstructionsOfAarch64) {
  EXPECT_EQ(on_aarch64(R_AARCH64_CALL26, 8, 0x94000000), 0x94000002U);               // bl #8
  EXPECT_EQ(on_aarch64(R_AARCH64_CALL26, -4, 0x94000000), 0x97ffffffU);              // bl #-4
  EXPECT_EQ(on_aarch64(R_AARCH64_JUMP26, -8, 0x14000000), 0x17fffffeU);              // b #-8
  EXPECT_EQ(on_aarch64(R_AARCH64_LD_PREL_LO19, 16, 0x9c000003), 0x9c000083U);        // ldr q3, #16
  EXPECT_EQ(on_aarch64(R_AARCH64_ADR_PREL_LO21, 5, 0x10000001), 0x30000021U);        // adr x1, #5
  EXPECT_EQ(on_aarch64(R_AARCH64_ADR_PREL_LO21, -1, 0x10000001), 0x70ffffe1U);       // adr x1, #-1
  EXPECT_EQ(on_aarch64(R_AARCH64_ADR_PREL_LO21, 1048575, 0x10000000), 0x707fffe0U);  // adr x0, #1048575
  EXPECT_EQ(on_aarch64(R_AARCH64_PREL32, -12, 0), 0xfffffff4U);
}

TEST(Relocate, WhatWasThereIsReplaced) {
  EXPECT_EQ(on_aarch64(R_AARCH64_CALL26, 8, 0x97ffffff), 0x94000002U);
  EXPECT_EQ(on_aarch64(R_AARCH64_ADR_PREL_LO21, 4, 0x70ffffe1), 0x10000021U);
}

TEST(Relocate, NumbersOfX86) {
  EXPECT_EQ(relocated(EM_X86_64, R_X86_64_PC32, 24), 24U);
  EXPECT_EQ(relocated(EM_X86_64, R_X86_64_PLT32, -4), 0xfffffffcU);
}

TEST(Relocate, RefusesWhatIsTooFarOrDependsOnThePlaceOfTheCode) {
  EXPECT_THROW(on_aarch64(R_AARCH64_ADR_PREL_LO21, 1 << 20, 0x10000000), InternalError);
  EXPECT_THROW(on_aarch64(R_AARCH64_LD_PREL_LO19, -(1 << 20) - 4, 0x9c000000), InternalError);
  EXPECT_THROW(on_aarch64(R_AARCH64_LD_PREL_LO19, 2, 0x9c000000), InternalError);
  EXPECT_THROW(on_aarch64(R_AARCH64_CALL26, int64_t{1} << 27, 0x94000000), InternalError);
  EXPECT_THROW(on_aarch64(R_AARCH64_ABS64, 8, 0), InternalError);
  EXPECT_THROW(on_aarch64(R_AARCH64_ADR_PREL_PG_HI21, 8, 0), InternalError);
  EXPECT_THROW(relocated(EM_X86_64, R_X86_64_64, 8), InternalError);
}

}  // namespace
}  // namespace ingot::core::cpu
