// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/cudnn.h"

#include <array>

#include <fmt/core.h>

#include "backends/cuda/execute/library_errors.h"

namespace ingot::core::cuda {
namespace {

void find_cudnn_functions(FunctionFinder& get, Cudnn& calls) {
  get("cudnnCreate", calls.create);
  get("cudnnSetStream", calls.set_stream);
  get("cudnnGetErrorString", calls.status_text);
  get("cudnnGetLastErrorString", calls.last_error);
  get("cudnnBackendCreateDescriptor", calls.create_descriptor);
  get("cudnnBackendDestroyDescriptor", calls.destroy_descriptor);
  get("cudnnBackendSetAttribute", calls.set);
  get("cudnnBackendGetAttribute", calls.get);
  get("cudnnBackendFinalize", calls.finalize);
  get("cudnnBackendExecute", calls.execute);
}

}  // namespace

const Cudnn* find_cudnn(const char** reason) {
  static const OpenedFunctions<Cudnn> opened = open_library_calls(kCudnn, find_cudnn_functions);
  return opened.get(reason);
}

void check(const Cudnn& library, int result, const char* call) {
  if (result == 0) [[likely]]
    return;
  constexpr size_t kLongest = 1024;
  std::array<char, kLongest> words{};
  library.last_error(words.data(), words.size() - 1);
  throw_refused(
      kCudnn, call,
      fmt::format("{}{}{}", library.status_text(result), words[0] != '\0' ? ": " : "", words.data()));
}

}  // namespace ingot::core::cuda
