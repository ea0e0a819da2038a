// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/matrix_emulator.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "support/cpu_features.h"

namespace ingot::core::cpu::test {
namespace {

constexpr int kRegisters = 8, kRows = 16, kRowBytes = 64;

// What LDTILECFG loads.
struct Configuration {
  uint8_t palette = 0;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(Configuration) == 64);

struct State {
  Configuration configuration;
  uint8_t registers[kRegisters][kRows][kRowBytes] = {};
};
thread_local State state;

// An instruction with a VEX prefix of three bytes and opcodes of map 2, as all of them have.
struct Instruction {
  int prefix = 0;  // 0: none, 1: 66, 2: F3, 3: F2
  int opcode = 0, mode = 0, reg = 0, rm = 0, third = 0;
  uint64_t address = 0, stride = 0;
  int length = 0;
};

uint64_t register_value(const mcontext_t& machine, int number) {
  constexpr std::array kOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(machine.gregs[kOrder[static_cast<size_t>(number)]]);
}

// With base and index registers; the index, times its scale, is the stride of loads and stores.
void read_address(Instruction& instruction, const uint8_t* after, const mcontext_t& machine, bool index_high,
                  bool base_high) {
  const uint8_t* next = after;
  int base = instruction.rm;
  if (instruction.rm == 4) {
    const uint8_t sib = *next++;
    base = sib & 7;
    const int index = (sib >> 3 & 7) + (index_high ? 8 : 0);
    if (index != 4) instruction.stride = register_value(machine, index) << (sib >> 6);
  }
  if (base == 5 && instruction.mode == 0) std::abort();  // an absolute address: not emulated
  instruction.address = register_value(machine, base + (base_high ? 8 : 0));
  int32_t displacement = 0;
  if (instruction.mode == 1) displacement = static_cast<int8_t>(*next++);
  if (instruction.mode == 2) {
    std::memcpy(&displacement, next, sizeof(displacement));
    next += sizeof(displacement);
  }
  instruction.address += static_cast<uint64_t>(int64_t{displacement});
  instruction.length += static_cast<int>(next - after);
}

std::optional<Instruction> decode(const uint8_t* code, const mcontext_t& machine) {
  constexpr int kMap = 2;
  if (code[0] != 0xC4 || (code[1] & 0x1F) != kMap) return std::nullopt;
  Instruction instruction;
  instruction.prefix = code[2] & 3;
  instruction.third = ~(code[2] >> 3) & 15;
  instruction.opcode = code[3];
  instruction.mode = code[4] >> 6;
  instruction.reg = code[4] >> 3 & 7;
  instruction.rm = code[4] & 7;
  instruction.length = 5;
  if (instruction.mode != 3)
    read_address(instruction, code + 5, machine, (code[1] & 0x40) == 0, (code[1] & 0x20) == 0);
  return instruction;
}

bool configure(const Instruction& instruction) {
  if (instruction.prefix != 0) return false;
  state = {};
  if (instruction.mode == 3) return instruction.reg == 0;  // release
  std::memcpy(&state.configuration, reinterpret_cast<const void*>(instruction.address),
              sizeof(Configuration));
  for (int i = 0; i < kRegisters; ++i) {
    const Configuration& all = state.configuration;
    if (all.row_bytes[i] > kRowBytes || all.rows[i] > kRows) return false;
  }
  return state.configuration.palette == 1;
}

bool zero(const Instruction& instruction) {
  if (instruction.prefix != 3 || instruction.mode != 3) return false;
  std::memset(state.registers[instruction.reg], 0, sizeof(state.registers[0]));
  return true;
}

bool move(const Instruction& instruction) {
  const bool stores = instruction.prefix == 2;
  if (instruction.prefix == 0 || instruction.rm != 4 || instruction.mode == 3) return false;
  const int number = instruction.reg;
  if (!stores) std::memset(state.registers[number], 0, sizeof(state.registers[0]));
  for (int row = 0; row < state.configuration.rows[number]; ++row) {
    auto* memory =
        reinterpret_cast<uint8_t*>(instruction.address + instruction.stride * static_cast<uint64_t>(row));
    uint8_t* own = state.registers[number][row];
    const size_t bytes = state.configuration.row_bytes[number];
    stores ? std::memcpy(memory, own, bytes) : std::memcpy(own, memory, bytes);
  }
  return true;
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}
float from_bfloat16(const uint8_t* bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return flushed(std::bit_cast<float>(uint32_t{bits} << 16));
}

void add_pairs(uint8_t* sum, const uint8_t* a, const uint8_t* b) {
  float total = 0;
  std::memcpy(&total, sum, sizeof(total));
  for (int i = 0; i < 4; i += 2) total = flushed(total + from_bfloat16(a + i) * from_bfloat16(b + i));
  std::memcpy(sum, &total, sizeof(total));
}
void add_quads(uint8_t* sum, const uint8_t* a, const uint8_t* b) {
  int32_t total = 0;
  std::memcpy(&total, sum, sizeof(total));
  for (int i = 0; i < 4; ++i) total += int32_t{a[i]} * static_cast<int8_t>(b[i]);
  std::memcpy(sum, &total, sizeof(total));
}

bool multiply(const Instruction& instruction) {
  constexpr int kBFloat16 = 0x5C, kBytes = 0x5E, kWordBytes = 4;
  const bool of_bfloat16 = instruction.opcode == kBFloat16 && instruction.prefix == 2;
  const bool of_bytes = instruction.opcode == kBytes && instruction.prefix == 1;
  const int reg = instruction.reg, rm = instruction.rm, third = instruction.third;
  const Configuration& all = state.configuration;
  if ((!of_bfloat16 && !of_bytes) || instruction.mode != 3 || reg == rm || reg == third || rm == third)
    return false;
  if (all.row_bytes[rm] / kWordBytes != all.rows[third] || all.rows[reg] != all.rows[rm]) return false;
  for (int row = 0; row < all.rows[reg]; ++row) {
    for (int step = 0; step < all.rows[third]; ++step) {
      for (int column = 0; column < all.row_bytes[reg]; column += kWordBytes) {
        (of_bfloat16 ? add_pairs : add_quads)(state.registers[reg][row] + column,
                                              state.registers[rm][row] + step * kWordBytes,
                                              state.registers[third][step] + column);
      }
    }
  }
  return true;
}

bool carry_out(const Instruction& instruction) {
  constexpr int kConfigure = 0x49, kMove = 0x4B;
  if (instruction.opcode == kConfigure)
    return instruction.prefix == 0 ? configure(instruction) : zero(instruction);
  if (state.configuration.palette == 0) return false;
  return instruction.opcode == kMove ? move(instruction) : multiply(instruction);
}

void on_refused(int, siginfo_t*, void* context) {
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto* code = reinterpret_cast<const uint8_t*>(machine.gregs[REG_RIP]);
  const std::optional<Instruction> instruction = decode(code, machine);
  if (!instruction || !carry_out(*instruction)) std::abort();
  machine.gregs[REG_RIP] += instruction->length;
}

}  // namespace

bool can_run(const char* level) {
  const CpuFeatures wanted = parse_cpu_features(level), host = host_cpu_features();
  if (host.covers(wanted)) return request_cpu_features(wanted);
  CpuFeatures with_matrices = host;
  for (const CpuFeature feature : {CpuFeature::kAmxTile, CpuFeature::kAmxBf16, CpuFeature::kAmxInt8})
    with_matrices.add(feature);
  if (!with_matrices.covers(wanted) || host.has(CpuFeature::kAmxTile)) return false;
  struct sigaction action{};
  action.sa_sigaction = on_refused;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return ::sigaction(SIGILL, &action, nullptr) == 0;
}

}  // namespace ingot::core::cpu::test
