// SPDX-License-Identifier: Apache-2.0
// A program as plain data: made by the planner, stored in the engine file, run by the executor.
//
// A program has buffers and steps. Steps run in order; each declares the buffers that it reads and writes.
// Every size is a Dim over the program's symbols, and every symbol is bound by an input's dim or by a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/launch.h"
#include "support/hash.h"
#include "types/plain_value.h"
#include "types/tensor_type.h"

namespace ingot::core {

constexpr size_t kMaxNesting = 16;  // of programs in programs

using BufferId = uint32_t;

// Where a buffer lives: the host, or device `index` of the context.
struct Place {
  enum class Kind : uint8_t { kHost, kDevice };
  Kind kind = Kind::kHost;
  uint8_t index = 0;
  bool operator==(const Place&) const = default;
};

// 0 is the host, 1 + k is device k.
inline uint8_t place_number(Place place) {
  return place.kind == Place::Kind::kHost ? 0 : static_cast<uint8_t>(1 + place.index);
}
inline Place numbered_place(uint8_t number) {
  return number == 0 ? Place{} : Place{Place::Kind::kDevice, static_cast<uint8_t>(number - 1)};
}

enum class Storage : uint8_t {
  kInput,     // `index`: which input of the program
  kOutput,    // `index`: which output
  kWeight,    // `index`: id in the engine's weight table (prepared, or an init program's source)
  kConstant,  // `index`: id in the engine's weight table; value is part of the engine's identity
  kState,     // `index`: which state
  kArena,     // in the arena of its place, see `above`
  kAlias,     // shares the memory of buffer `alias_of`, starting `alias_offset` bytes into it
  kDynamic,   // allocated once a step has bound the last symbol of its size
};

struct Buffer {
  std::string name;
  TensorType type;
  Place place;
  Storage storage = Storage::kArena;
  uint32_t index = 0;
  BufferId alias_of = kNoId;  // a smaller id
  Dim alias_offset = 0;
  // Arena buffers lie directly above these: offset = max over b of (offset(b) + bytes(b)), 0 if there are
  // none. Any two arena buffers that are live at the same time are ordered by a chain of such relations, so
  // that the plan is valid for every value of the symbols (docs/design/001-symbolic-memory-plans.md). All of
  // them are smaller ids.
  std::vector<BufferId> above;
  Dim bytes = 0;  // kArena: its size, a multiple of 64, over symbols that inputs bind
};

struct BufferUse {
  BufferId buffer;
  bool reads = true;
  bool writes = false;
  bool operator==(const BufferUse&) const = default;
};

enum class StepKind : uint8_t {
  kKernel,   // a kernel binary of a backend
  kRoutine,  // a host routine by name; an absent optional argument is a use of kNoId
  kCopy,     // uses[0] -> uses[1], same storage bytes, possibly between places
  kProgram,  // runs nested programs, see ControlKind
};

// A symbol that a step binds while running, from the value of an i64 scalar buffer that the host reads.
struct SymbolBinding {
  std::string symbol;
  BufferId buffer;
  Dim limit;  // upper bound; a value outside 0..limit fails the run
};

// How a kProgram step calls its nested programs. Their ports are bound to buffers of this program of equal
// types.
//  kBranch: uses = {condition: bool scalar, inputs..., outputs...}; programs = {then, else}, both with these
//  ports. kLoop: uses = {trip count: i64 scalar or kNoId, condition: bool scalar or kNoId, carried...,
//  invariants..., results...};
//    programs = {body} with inputs {iteration: i64 scalar, carried..., invariants...} and outputs {go on:
//    bool, carried...}. It ends after `trip count` iterations or when the condition is false; results are the
//    carried values at the end.
enum class ControlKind : uint8_t { kBranch, kLoop };

struct Step {
  StepKind kind = StepKind::kKernel;
  std::string name;             // "fused[linear, gelu]"
  std::string backend;          // kKernel: "cpu", "cuda"
  std::vector<BufferUse> uses;  // the arguments, in order
  Launch launch;                // kKernel
  std::string routine;          // kRoutine
  NamedValues attributes;       // kRoutine
  std::vector<SymbolBinding> binds;
  bool host_sees_result = false;               // the host must wait for this step (branch, trip count, size)
  ControlKind control = ControlKind::kBranch;  // kProgram
  std::vector<uint32_t> programs;              // kProgram: ids in Program::nested
  std::vector<uint32_t> nodes;                 // ids in the engine's node table: what this step computes
  Dim operations = 0, bytes = 0;  // work according to its nodes' definitions, for profiles; 0: unknown
};

struct Port {  // an input, output or state of a program
  std::string name;
  TensorType type;
  BufferId buffer = kNoId;
};

struct Program {
  std::string name;     // "main", "init"
  SymbolTable symbols;  // of a nested program: only those that its own steps bind
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Port> states;  // written in place; a nested program names its parent's states by index
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Program> nested;  // each has its own arena
};

// A kernel binary: flat machine code, position independent, no relocations, no imports; never empty.
struct Image {
  std::string kernel;  // name, for profiles
  std::string target;  // backend and device: "cpu:x86-64-v4+vnni"
  std::vector<std::byte> code;
  uint32_t alignment = 64;  // of the code in a file and in memory, at most a page
  Digest key{};             // of the canonical key: equal keys share one image
};

// "cpu" and "x86-64-v4+vnni" of the target "cpu:x86-64-v4+vnni". Without a colon all of it is the backend.
inline std::string_view backend_of(const Image& image) {
  return std::string_view(image.target).substr(0, image.target.find(':'));
}
inline std::string_view device_of(const Image& image) {
  return std::string_view(image.target).substr(std::min(backend_of(image).size() + 1, image.target.size()));
}

// Throws UserError INGOT-U206 with the broken rule: ids in range, symbols bound before use, buffers written
// before they are read, dims bounded in depth, any two arena buffers that are live at the same time ordered.
void validate(const Program& program, size_t images, size_t weights);

// The buffer whose memory `id` shares: itself unless it is an alias.
BufferId root_buffer(const Program& program, BufferId id);

// Evaluates the order relation to offsets: the only evaluator of the plan, used by validate, planner and
// runtime. `sizes` (Buffer::bytes) and `offsets` have one entry per buffer; returns the arena's bytes for
// `place`.
int64_t place_arena(const Program& program, Place place, std::span<const int64_t> sizes,
                    std::span<int64_t> offsets);

}  // namespace ingot::core
