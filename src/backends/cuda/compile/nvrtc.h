// SPDX-License-Identifier: Apache-2.0
// NVIDIA's run-time compiler, opened when it is first needed: CUDA C++ to machine code, on machines with or
// without a GPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::core::cuda {

class Nvrtc {
 public:
  // `path`: a library file, or "" for those that the system's loader finds. DeviceError INGOT-D401 lists what
  // was tried.
  explicit Nvrtc(const std::string& path = "");
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  std::string version() const;  // "13.0": a part of keys
  // The cubin for an architecture such as "sm_90a". Multiply-adds are fused only where the text says so, and
  // denormals are kept. InternalError with the compiler's log. Thread-safe.
  std::vector<std::byte> compile(const std::string& text, std::string_view architecture) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;
};

// Opened at its first use, from $INGOT_NVRTC or the loader's path.
const Nvrtc& shared_nvrtc();

}  // namespace ingot::core::cuda
