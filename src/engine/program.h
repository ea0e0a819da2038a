// SPDX-License-Identifier: Apache-2.0
// A program as plain data: made by the planner, stored in the engine file, run by the executor.
//
// A program has buffers and steps. Steps run in order; each declares the buffers that it reads and writes.
// Every size is a Dim over the program's symbols, and every symbol is bound by an input's dim, by the rank,
// or by a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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

// Where the ports of branches and loops are, in an engine with so many devices.
inline Place place_of_nested(size_t devices) { return numbered_place(devices == 0 ? 0 : 1); }

// What holds a buffer's bytes.
struct InputStorage {  // input `index` of the program
  uint32_t index = 0;
};
struct OutputStorage {  // output `index`
  uint32_t index = 0;
};
struct WeightStorage {  // an entry of the engine's weight table: prepared, or what an init program reads
  uint32_t id = 0;
};
struct ConstantStorage {  // an entry of the weight table whose value is part of the engine's identity
  uint32_t id = 0;
};
struct StateStorage {  // state `index`
  uint32_t index = 0;
};
// In the arena of its place, directly above these buffers: offset = max over b of (offset(b) + bytes(b)), 0
// if there are none. Any two arena buffers that are live at the same time are ordered by a chain of such
// relations, so that the plan is valid for every value of the symbols
// (docs/design/001-symbolic-memory-plans.md). All of them are smaller ids.
struct ArenaStorage {
  Dim bytes = 0;  // its size, a multiple of 64, over symbols that inputs or the rank bind
  std::vector<BufferId> above;
};
struct AliasStorage {  // the memory of a buffer with a smaller id, starting `offset` bytes into it
  BufferId of = 0;
  Dim offset = 0;
};
struct DynamicStorage {};  // allocated once a step has bound the last symbol of its size

using Storage = std::variant<InputStorage, OutputStorage, WeightStorage, ConstantStorage, StateStorage,
                             ArenaStorage, AliasStorage, DynamicStorage>;

struct Buffer {
  std::string name;
  TensorType type;
  Place place;
  Storage storage = ArenaStorage{};

  template <typename Kind>
  Kind* as() {
    return std::get_if<Kind>(&storage);
  }
  template <typename Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&storage);
  }
  // Its entry in the weight table, if it is a weight or constant.
  std::optional<uint32_t> weight() const;
};

struct BufferUse {
  BufferId buffer;
  bool reads = true;
  bool writes = false;
  bool operator==(const BufferUse&) const = default;
};

// A symbol that a step binds while running, from the value of an i64 scalar buffer that the host reads.
struct SymbolBinding {
  std::string symbol;
  BufferId buffer;
  Dim limit;  // upper bound; a value outside 0..limit fails the run
};

// What a step does.
struct KernelStep {     // runs a kernel binary of a backend
  std::string backend;  // "cpu", "cuda"
  Launch launch;
};
struct RoutineStep {  // runs a host routine; an absent optional argument is a use of kNoId
  std::string routine;
  NamedValues attributes;
  ImageId image = kNoId;  // of a collective: by which GPUs do it themselves (DeviceCollective::image)
  // The same for this step and the one behind it, a kernel that reads the result: GPUs that do both at once
  // read this step's operand as long as that one runs.
  ImageId with_next = kNoId;
};
struct CopyStep {};  // uses[0] -> uses[1], same storage bytes, possibly between places

// Nested programs, by index in Program::nested. Their ports are bound to buffers of this program of equal
// types.
struct BranchStep {  // uses = {condition: bool scalar, inputs..., outputs...}; both programs have these ports
  uint32_t then = 0, otherwise = 0;
};
// uses = {trip count: i64 scalar or kNoId, condition: bool scalar or kNoId, carried..., invariants...,
// results...}; the body has inputs {iteration: i64 scalar, carried..., invariants...} and outputs {go on:
// bool, carried...}. It ends after `trip count` iterations or when the condition is false; results are the
// carried values at the end.
struct LoopStep {
  uint32_t body = 0;
};
using Action = std::variant<KernelStep, RoutineStep, CopyStep, BranchStep, LoopStep>;

struct Step {
  std::string name;  // "fused[linear, gelu]"
  Action action = CopyStep{};
  std::vector<BufferUse> uses;  // the arguments, in order
  std::vector<SymbolBinding> binds;
  bool host_sees_result = false;  // the host must wait for this step (branch, trip count, size)
  std::vector<uint32_t> nodes;    // ids in the engine's node table: what this step computes
  Dim operations = 0, bytes = 0;  // work according to its nodes' definitions, for profiles; 0: unknown

  template <typename Kind>
  Kind* as() {
    return std::get_if<Kind>(&action);
  }
  template <typename Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&action);
  }
  std::vector<uint32_t> nested() const;  // the nested programs that it runs
};

struct Port {  // an input, output or state of a program
  std::string name;
  TensorType type;
  BufferId buffer = kNoId;
  bool is_complex = false;  // to callers: the last dim, of size 2, holds real and imaginary parts
};

// What callers pass and receive: "c64[3, 4]" for the f32[3, 4, 2] of a complex port.
TensorType type_for_callers(TensorType type, bool is_complex);
inline TensorType type_for_callers(const Port& port) { return type_for_callers(port.type, port.is_complex); }

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

// Whether sizes depend on the rank that runs the program.
bool has_rank_sizes(const Program& program);

// Throws UserError INGOT-U206 with the broken rule: ids in range, symbols bound before use, buffers written
// before they are read, dims bounded in depth, any two arena buffers that are live at the same time ordered.
void validate(const Program& program, size_t images, size_t weights);

// The buffer whose memory `id` shares: itself unless it is an alias.
BufferId root_buffer(const Program& program, BufferId id);

// Whether the step's `with_next`, if it has one, is of a kernel behind it that reads its result.
bool has_its_next(const Program& program, size_t step);

// Evaluates the order relation to offsets: the only evaluator of the plan, used by validate, planner and
// runtime. `sizes` (Buffer::bytes) and `offsets` have one entry per buffer; returns the arena's bytes for
// `place`.
int64_t place_arena(const Program& program, Place place, std::span<const int64_t> sizes,
                    std::span<int64_t> offsets);

}  // namespace ingot::core
