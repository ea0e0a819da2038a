// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cuda/gpu.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "backends/cuda/images/code.h"
#include "support/error.h"

namespace ingot::core::cuda::test {

using Address = unsigned long long;

// As cuda.h declares them.
struct Gpu::Driver {
  int (*init)(unsigned);
  int (*get_device)(int*, int);
  int (*get_attribute)(int*, int, int);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*load)(void**, const void*);
  int (*unload)(void*);
  int (*function)(void**, void*, const char*);
  int (*set_attribute)(void*, int, int);
  int (*allocate)(Address*, size_t);
  int (*free)(Address);
  int (*to_device)(Address, const void*, size_t);
  int (*to_host)(void*, Address, size_t);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**);
  int (*synchronize)();
  int device = 0;

  bool find_all(void* library) {
    return find(library, "cuInit", init) && find(library, "cuDeviceGet", get_device) &&
           find(library, "cuDeviceGetAttribute", get_attribute) &&
           find(library, "cuDevicePrimaryCtxRetain", retain) &&
           find(library, "cuCtxSetCurrent", set_current) && find(library, "cuModuleLoadData", load) &&
           find(library, "cuModuleUnload", unload) && find(library, "cuModuleGetFunction", function) &&
           find(library, "cuFuncSetAttribute", set_attribute) && find(library, "cuMemAlloc_v2", allocate) &&
           find(library, "cuMemFree_v2", free) && find(library, "cuMemcpyHtoD_v2", to_device) &&
           find(library, "cuMemcpyDtoH_v2", to_host) && find(library, "cuLaunchKernel", launch) &&
           find(library, "cuCtxSynchronize", synchronize);
  }

 private:
  template <typename Function>
  static bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
  }
};

namespace {

void check(int result, const char* call) {
  if (result != 0) throw DeviceError("INGOT-D401", fmt::format("{} failed with CUDA error {}", call, result));
}

}  // namespace

class Gpu::Module {
 public:
  Module(const Driver& driver, void* handle) : driver_(driver), handle_(handle) {}
  ~Module() { driver_.unload(handle_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  void* handle() const { return handle_; }

 private:
  const Driver& driver_;
  void* handle_;
};

Gpu::Gpu(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
Gpu::~Gpu() = default;

std::unique_ptr<Gpu> Gpu::open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto driver = std::make_unique<Driver>();
  void* context = nullptr;
  if (library == nullptr || !driver->find_all(library) || driver->init(0) != 0 ||
      driver->get_device(&driver->device, 0) != 0 || driver->retain(&context, driver->device) != 0) {
    return nullptr;
  }
  check(driver->set_current(context), "cuCtxSetCurrent");
  return std::unique_ptr<Gpu>(new Gpu(std::move(driver)));
}

std::string Gpu::architecture() const {
  if (const char* wanted = std::getenv("INGOT_TEST_ARCHITECTURE")) return wanted;
  constexpr int kMajor = 75, kMinor = 76;
  int major = 0, minor = 0;
  check(driver_->get_attribute(&major, kMajor, driver_->device), "cuDeviceGetAttribute");
  check(driver_->get_attribute(&minor, kMinor, driver_->device), "cuDeviceGetAttribute");
  return fmt::format("sm_{}{}{}", major, minor, major == 9 ? "a" : "");
}

std::shared_ptr<const Gpu::Module> Gpu::load(const std::vector<std::byte>& code) {
  void* handle = nullptr;
  const ImageCode image = read_image(code, architecture().starts_with("compute_"));
  check(driver_->load(&handle, (image.cubin.empty() ? image.ptx : image.cubin).data()), "cuModuleLoadData");
  return std::make_shared<const Module>(*driver_, handle);
}

int32_t Gpu::run(const Module& module, const std::string& entry, const LaunchPlan& plan,
                 const SymbolValues& symbols, std::vector<core::test::Storage>& storages) {
  constexpr int64_t kMostBlocks = 4096;  // fewer than many kernels want: groups take several points
  constexpr int kDynamicShared = 8;
  const Driver& driver = *driver_;
  const int groups = plan.block / plan.group;
  const int64_t points = evaluate(plan.points, symbols);
  const int64_t blocks = std::clamp<int64_t>((points + groups - 1) / groups, 1, kMostBlocks);
  const int64_t row_bytes = evaluate(plan.row_bytes, symbols);
  const auto shared = static_cast<unsigned>(plan.rows_in_shared ? row_bytes * groups : 0);
  void* function = nullptr;
  check(driver.function(&function, module.handle(), entry.c_str()), "cuModuleGetFunction");
  check(driver.set_attribute(function, kDynamicShared, static_cast<int>(shared)), "cuFuncSetAttribute");
  std::vector<Address> owned;
  const auto copy = [&](const void* data, size_t size) {
    Address address = 0;
    check(driver.allocate(&address, std::max<size_t>(size, 1)), "cuMemAlloc");
    owned.push_back(address);
    if (data != nullptr) check(driver.to_device(address, data, size), "cuMemcpyHtoD");
    return address;
  };
  std::vector<Address> pointers;
  for (core::test::Storage& storage : storages)
    pointers.push_back(copy(storage.bytes.data(), storage.bytes.size()) + core::test::Storage::kGuard);
  std::vector<int64_t> values;
  for (const std::string& symbol : plan.symbols) values.push_back(symbols.at(symbol));
  Address scratch = plan.rows_in_shared ? 0 : copy(nullptr, static_cast<size_t>(row_bytes * groups * blocks));
  int32_t status = 0;
  Address status_address = copy(&status, sizeof(status));
  std::vector<void*> arguments;
  for (Address& pointer : pointers) arguments.push_back(&pointer);
  for (int64_t& value : values) arguments.push_back(&value);
  arguments.push_back(&scratch);
  arguments.push_back(&status_address);
  check(driver.launch(function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(plan.block), 1, 1,
                      shared, nullptr, arguments.data(), nullptr),
        "cuLaunchKernel");
  check(driver.synchronize(), "cuCtxSynchronize");
  for (size_t i = 0; i < storages.size(); ++i)
    check(driver.to_host(storages[i].bytes.data(), owned[i], storages[i].bytes.size()), "cuMemcpyDtoH");
  check(driver.to_host(&status, status_address, sizeof(status)), "cuMemcpyDtoH");
  for (const Address address : owned) driver.free(address);
  return status;
}

}  // namespace ingot::core::cuda::test
