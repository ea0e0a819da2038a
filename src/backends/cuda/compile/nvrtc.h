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
  // Code for an architecture (images/architecture.h): a cubin for "sm_90a", PTX for "compute_90", both for
  // "sm_90" (images/code.h). UserError INGOT-U123 if this NVRTC does not know it. Multiply-adds are fused
  // only where the text says so, and denormals are kept. InternalError with the compiler's log. Thread-safe.
  std::vector<std::byte> compile(const std::string& text, std::string_view architecture) const;

 private:
  void require_known(std::string_view architecture, int number) const;

  struct Functions;
  std::unique_ptr<const Functions> functions_;
};

// Opened at its first use, from $INGOT_NVRTC or the loader's path.
const Nvrtc& shared_nvrtc();

}  // namespace ingot::core::cuda
