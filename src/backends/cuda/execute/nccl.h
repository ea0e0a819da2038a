// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library of collectives, opened when a group of ranks first needs it.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// As nccl.h declares them.
constexpr int kNcclSuccess = 0, kNcclInProgress = 7;
constexpr int kNcclBytes = 1;  // ncclUint8
struct NcclId {
  char bytes[128];
};
struct NcclConfig {  // ncclConfig_t of version 2.18, to which later ones add
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cluster_size = INT_MIN, least_blocks = INT_MIN, most_blocks = INT_MIN;  // its own choice
  const char* network = nullptr;
  int shares_split = INT_MIN;
};

struct Nccl {
  int (*version)(int*);
  const char* (*error_text)(int);
  const char* (*last_error)(Handle communicator);
  int (*make_id)(NcclId*);
  int (*init)(Handle* communicator, int size, NcclId id, int rank, NcclConfig*);
  int (*async_error)(Handle communicator, int*);
  int (*abort)(Handle communicator);
  int (*destroy)(Handle communicator);
  int (*all_reduce)(const void*, void*, size_t, int dtype, int reduction, Handle communicator, Handle stream);
  int (*reduce_scatter)(const void*, void*, size_t, int dtype, int reduction, Handle communicator,
                        Handle stream);
  int (*all_gather)(const void*, void*, size_t, int dtype, Handle communicator, Handle stream);
  int (*broadcast)(const void*, void*, size_t, int dtype, int source, Handle communicator, Handle stream);
  int (*send)(const void*, size_t, int dtype, int rank, Handle communicator, Handle stream);
  int (*receive)(void*, size_t, int dtype, int rank, Handle communicator, Handle stream);
  int (*begin_group)();
  int (*end_group)();
  int number;  // 22907 is 2.29.7
};

// From $INGOT_NCCL or the loader's path. Null: `reason` says what is missing, or too old.
const Nccl* open_nccl(const char** reason);

}  // namespace ingot::core::cuda
