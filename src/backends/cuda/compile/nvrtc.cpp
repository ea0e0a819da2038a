// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "backends/cuda/images/architecture.h"
#include "backends/cuda/images/code.h"
#include "support/error.h"

namespace ingot::core::cuda {

// As nvrtc.h declares them; the header is not needed to build Ingot.
struct Nvrtc::Functions {
  using Program = void*;
  void* library = nullptr;
  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const*,
                const char* const*);
  int (*compile)(Program, int count, const char* const* options);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*destroy)(Program*);
  int (*architecture_count)(int*);
  int (*architectures)(int*);
};

namespace {

// NVRTC opens a second library by name alone: outside the loader's path it has to be loaded already.
void open_builtins(const std::string& path) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

void* open_library(const std::string& path) {
  std::string tried;
  const auto open = [&tried](const char* name) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) tried += fmt::format("{}{}", tried.empty() ? "" : "; ", dlerror());
    return library;
  };
  if (!path.empty()) {
    open_builtins(path);
    if (void* library = open(path.c_str())) return library;
  } else {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      if (void* library = open(name)) return library;
    }
  }
  throw DeviceError("INGOT-D401",
                    fmt::format("NVRTC, which compiles kernels for GPUs, cannot be opened: {}", tried),
                    "install it (pip install nvidia-cuda-nvrtc), or put its folder into LD_LIBRARY_PATH");
}

template <typename Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return;
  throw DeviceError("INGOT-D401", fmt::format("the NVRTC library lacks {}", name),
                    "install NVRTC 12 or newer");
}

}  // namespace

Nvrtc::Nvrtc(const std::string& path) {
  auto functions = std::make_unique<Functions>();
  functions->library = open_library(path);
  find(functions->library, "nvrtcVersion", functions->version);
  find(functions->library, "nvrtcGetErrorString", functions->error_text);
  find(functions->library, "nvrtcCreateProgram", functions->create);
  find(functions->library, "nvrtcCompileProgram", functions->compile);
  find(functions->library, "nvrtcGetProgramLogSize", functions->log_size);
  find(functions->library, "nvrtcGetProgramLog", functions->log);
  find(functions->library, "nvrtcGetCUBINSize", functions->cubin_size);
  find(functions->library, "nvrtcGetCUBIN", functions->cubin);
  find(functions->library, "nvrtcGetPTXSize", functions->ptx_size);
  find(functions->library, "nvrtcGetPTX", functions->ptx);
  find(functions->library, "nvrtcDestroyProgram", functions->destroy);
  find(functions->library, "nvrtcGetNumSupportedArchs", functions->architecture_count);
  find(functions->library, "nvrtcGetSupportedArchs", functions->architectures);
  functions_ = std::move(functions);
}

Nvrtc::~Nvrtc() = default;  // the library stays open: it cannot be unloaded safely

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions_->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

void Nvrtc::require_known(std::string_view architecture, int number) const {
  int count = 0;
  functions_->architecture_count(&count);
  std::vector<int> known(static_cast<size_t>(count));
  functions_->architectures(known.data());
  if (std::ranges::find(known, number) != known.end()) return;
  throw UserError("INGOT-U123",
                  fmt::format("NVRTC {} does not compile for {}, only for {}", version(), architecture,
                              fmt::join(known, ", ")),
                  "install a later NVRTC, or build PTX for it: device=cuda:compute_90");
}

std::vector<std::byte> Nvrtc::compile(const std::string& text, std::string_view architecture) const {
  const Functions& nvrtc = *functions_;
  const auto kind = parse_architecture(architecture);
  invariant(kind.has_value(), "code is compiled for no architecture");
  require_known(architecture, kind->number);
  Functions::Program program = nullptr;
  const auto check = [&](int result) {
    if (result == 0) return;
    std::string log;
    size_t size = 0;
    if (program != nullptr && nvrtc.log_size(program, &size) == 0) {
      log.resize(size);
      nvrtc.log(program, log.data());
    }
    throw InternalError(
        fmt::format("NVRTC rejected a generated kernel: {}\n{}\n{}", nvrtc.error_text(result), log, text));
  };
  check(nvrtc.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr));
  const auto destroy = [&nvrtc](Functions::Program* p) { nvrtc.destroy(p); };
  const std::unique_ptr<Functions::Program, decltype(destroy)> owner(&program, destroy);
  const std::string target = fmt::format("-arch={}", architecture);
  const char* options[] = {target.c_str(),    "-std=c++17",       "--fmad=false",   "--ftz=false",
                           "--prec-div=true", "--prec-sqrt=true", "-default-device"};
  check(nvrtc.compile(program, static_cast<int>(std::size(options)), options));
  const auto result = [&](auto get_size, auto get) {
    size_t size = 0;
    check(get_size(program, &size));
    std::vector<std::byte> code(size);
    check(get(program, reinterpret_cast<char*>(code.data())));
    return code;
  };
  if (kind->ptx) return result(nvrtc.ptx_size, nvrtc.ptx);  // with a zero at its end
  const std::vector<std::byte> cubin = result(nvrtc.cubin_size, nvrtc.cubin);
  return kind->exact ? cubin : with_ptx(cubin, result(nvrtc.ptx_size, nvrtc.ptx));
}

const Nvrtc& shared_nvrtc() {
  static const Nvrtc instance([] {
    const char* path = std::getenv("INGOT_NVRTC");
    return std::string(path == nullptr ? "" : path);
  }());
  return instance;
}

}  // namespace ingot::core::cuda
