// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/nccl.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "support/shared_library.h"

namespace ingot::core::cuda {
namespace {

constexpr int kOldest = 21800;

// The name of a function that the library lacks, or null.
const char* find_functions(void* library, Nccl& nccl) {
  const char* missing = nullptr;
  const auto get = [&](const char* name, auto& function) { find_function(library, name, function, missing); };
  get("ncclGetVersion", nccl.version);
  get("ncclGetErrorString", nccl.error_text);
  get("ncclGetLastError", nccl.last_error);
  get("ncclGetUniqueId", nccl.make_id);
  get("ncclCommInitRankConfig", nccl.init);
  get("ncclCommGetAsyncError", nccl.async_error);
  get("ncclCommAbort", nccl.abort);
  get("ncclCommDestroy", nccl.destroy);
  get("ncclAllReduce", nccl.all_reduce);
  get("ncclReduceScatter", nccl.reduce_scatter);
  get("ncclAllGather", nccl.all_gather);
  get("ncclBroadcast", nccl.broadcast);
  get("ncclSend", nccl.send);
  get("ncclRecv", nccl.receive);
  get("ncclGroupStart", nccl.begin_group);
  get("ncclGroupEnd", nccl.end_group);
  return missing;
}

// What its configuration has no fields for. NVLink multicast is off: it changes the order of sums, and needs
// what containers often lack. Memory that graphs use may be replaced while they are kept, so other ranks do
// not map it.
void set_environment() {
#ifndef _WIN32
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
#endif
}

struct OpenedNccl {
  std::optional<Nccl> nccl;
  std::string reason;
};

OpenedNccl open_library_of_nccl() {
  const char* path = std::getenv("INGOT_NCCL");
  const char* const name = path != nullptr && *path != '\0' ? path : "libnccl.so.2";
  set_environment();
  std::string problem;
  void* library = open_shared_library(name, problem);
  if (library == nullptr)
    return {std::nullopt, fmt::format("NCCL cannot be opened ({}): install the package nvidia-nccl-cu13 or "
                                      "-cu12, or name the file with INGOT_NCCL",
                                      problem)};
  Nccl nccl{};
  const char* missing = find_functions(library, nccl);
  if (missing == nullptr && nccl.version(&nccl.number) == kNcclSuccess && nccl.number >= kOldest)
    return {nccl, ""};
  return {std::nullopt, missing != nullptr
                            ? fmt::format("NCCL is too old: it lacks {}; 2.18 is needed", missing)
                            : fmt::format("NCCL is too old: its version is {}; 2.18 is needed", nccl.number)};
}

}  // namespace

const Nccl* open_nccl(const char** reason) {
  static const OpenedNccl opened = open_library_of_nccl();
  *reason = opened.reason.c_str();
  return opened.nccl ? &*opened.nccl : nullptr;
}

}  // namespace ingot::core::cuda
