// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/relocate.h"

#include <llvm/BinaryFormat/ELF.h>

#include <cstring>

#include "support/error.h"

namespace ingot::core::cpu {
namespace {

// Bits of an instruction that hold a distance, in units of `unit` bytes; ELF for the Arm 64-bit architecture,
// section 5.7.
struct Field {
  int bits, shift;
  int64_t unit;
};

uint32_t with_field(uint32_t word, const Field& field, int64_t distance) {
  invariant(distance % field.unit == 0, "generated code refers to what is not aligned");
  const int64_t value = distance / field.unit, half = int64_t{1} << (field.bits - 1);
  invariant(value >= -half && value < half, "generated code is too long for its addresses");
  const uint32_t mask = (uint32_t{1} << field.bits) - 1;
  return (word & ~(mask << field.shift)) | ((static_cast<uint32_t>(value) & mask) << field.shift);
}

// ADR holds the two lowest bits of its distance apart from the others.
uint32_t with_address(uint32_t word, int64_t distance) {
  const auto low = static_cast<uint32_t>(distance & 3);
  word = with_field(word, {.bits = 19, .shift = 5, .unit = 4}, distance - low);
  return (word & ~(3U << 29)) | (low << 29);
}

[[noreturn]] void refuse_relocation(uint64_t type) {
  throw InternalError("generated code needs a relocation that is not position-independent: " +
                      std::to_string(type));
}

uint32_t for_aarch64(uint32_t word, uint64_t type, int64_t distance) {
  switch (type) {
    case llvm::ELF::R_AARCH64_PREL32:
      return static_cast<uint32_t>(static_cast<int32_t>(distance));
    case llvm::ELF::R_AARCH64_CALL26:
    case llvm::ELF::R_AARCH64_JUMP26:
      return with_field(word, {.bits = 26, .shift = 0, .unit = 4}, distance);
    case llvm::ELF::R_AARCH64_LD_PREL_LO19:
      return with_field(word, {.bits = 19, .shift = 5, .unit = 4}, distance);
    case llvm::ELF::R_AARCH64_ADR_PREL_LO21:
      return with_address(word, distance);
    default:
      refuse_relocation(type);
  }
}

uint32_t for_x86(uint64_t type, int64_t distance) {
  if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32) refuse_relocation(type);
  return static_cast<uint32_t>(static_cast<int32_t>(distance));
}

}  // namespace

void relocate(std::span<std::byte> code, uint16_t machine, uint64_t type, uint64_t place, int64_t target) {
  const int64_t distance = target - static_cast<int64_t>(place);
  uint32_t word = 0;
  std::memcpy(&word, code.data() + place, sizeof(word));
  word = machine == llvm::ELF::EM_AARCH64 ? for_aarch64(word, type, distance) : for_x86(type, distance);
  std::memcpy(code.data() + place, &word, sizeof(word));
}

}  // namespace ingot::core::cpu
