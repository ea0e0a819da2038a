// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/library_kernel.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace ingot::core::cuda {

int64_t library_version(const Library& library) {
  const auto usable = [](const Library& each) {
    const LibraryVersion own = version_of(each);
    return own.problem.empty() ? own.version : 0;
  };
  if (&library == &kCudnn) {
    static const int64_t version = usable(kCudnn);
    return version;
  }
  static const int64_t version = usable(kCublasLt);
  return version;
}

int64_t library_version(const Library& library, const Target& target) {
  const bool is_exact = &library != &kCudnn || target.numerics == Target::Numerics::kFast;
  return target.times_tactics() && is_exact ? library_version(library) : 0;
}

LoweredKernel library_kernel(const Library& library, const Node& node, std::string_view architecture,
                             Launch launch) {
  const auto& constants = launch.constants;
  std::string tactic = fmt::format("{}, choice {}", library.files.name, constants[kLibraryChoice]);
  std::string text = fmt::format("{}: {} of {}, constants {}\n", tactic, node.op->name,
                                 name(node.operand_type(0).dtype), fmt::join(constants, " "));
  const auto compile = [text, name = fmt::format("{}: {}", node.op->name, tactic),
                        target = fmt::format("cuda:{}{}", architecture, library.suffix)] {
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    return Image{.kernel = name, .target = target, .code = {bytes, bytes + text.size()}};
  };
  return {
      .tactic = std::move(tactic), .launch = std::move(launch), .key = std::move(text), .compile = compile};
}

}  // namespace ingot::core::cuda
