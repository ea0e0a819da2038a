// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/nccl.h"

#include <cstdlib>

#include "support/library_files.h"

namespace ingot::core::cuda {
namespace {

constexpr int kOldest = 21800;
constexpr LibraryFiles kNcclFiles{"NCCL", "INGOT_NCCL", {"libnccl.so.2"}, "2.18"};
constexpr char kWhereItIs[] =
    "; install the package nvidia-nccl-cu13 or -cu12, or name the file with INGOT_NCCL";

void find_nccl_functions(FunctionFinder& get, Nccl& nccl) {
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

OpenedFunctions<Nccl> start_nccl() {
  set_environment();
  OpenedFunctions<Nccl> opened = open_functions(kNcclFiles, find_nccl_functions);
  if (opened.functions) {
    Nccl& nccl = *opened.functions;
    if (nccl.version(&nccl.number) != kNcclSuccess) nccl.number = 0;
    opened.problem = problem_with_version(kNcclFiles, nccl.number, kOldest);
  }
  if (opened.problem.empty()) return opened;
  return {std::nullopt, opened.problem + kWhereItIs};
}

}  // namespace

const Nccl* open_nccl(const char** reason) {
  static const OpenedFunctions<Nccl> opened = start_nccl();
  return opened.get(reason);
}

}  // namespace ingot::core::cuda
