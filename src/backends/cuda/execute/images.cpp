// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/images.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/execute/libraries.h"
#include "backends/cuda/execute/library_errors.h"
#include "backends/cuda/images/architecture.h"
#include "backends/cuda/images/code.h"
#include "backends/cuda/images/library_call.h"
#include "backends/cuda/kernel_abi.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

enum class Form : uint8_t { kNone, kCubin, kPtx };

// By its target alone: the image may have no code yet.
Form form_for(const Image& image, const Device& device) {
  const auto built = parse_architecture(architecture_of(image)),
             own = parse_architecture(device.architecture());
  if (!built || !own || shared_limit(*built) > device.shared_bytes()) return Form::kNone;
  if (built->exact) return built->number == own->number ? Form::kCubin : Form::kNone;
  if (built->number > own->number) return Form::kNone;
  const bool same_kind = built->number / 10 == own->number / 10;
  return same_kind && !built->ptx ? Form::kCubin : Form::kPtx;
}

// Empty if the image does not hold what the device runs.
std::span<const std::byte> code_for(const Image& image, const Device& device) {
  const Form form = form_for(image, device);
  if (form == Form::kNone) return {};
  const ImageCode code = read_image(image.code, parse_architecture(architecture_of(image))->ptx);
  return form == Form::kCubin ? code.cubin : code.ptx;
}

Handle load_function(const Image& image, std::span<const std::byte> code, Images& images) {
  constexpr int kMostDynamicShared = 8, kStaticShared = 1;
  const Driver& driver = images.device.driver();
  const RelaxedCapture relaxed(driver);
  Handle module = nullptr, function = nullptr;
  check(driver, driver.load_module(&module, code.data()), "cuModuleLoadData");
  images.may_overlap =
      images.may_overlap && parse_architecture(architecture_of(image))->number >= kFirstToOverlap;
  images.modules.push_back(module);
  const char* const entry = image.kernel.starts_with(kPeerEntry) ? image.kernel.c_str() : kEntry;
  check(driver, driver.function(&function, module, entry), "cuModuleGetFunction");
  int declared = 0;
  check(driver, driver.function_attribute(&declared, kStaticShared, function), "cuFuncGetAttribute");
  check(driver,
        driver.set_function_attribute(function, kMostDynamicShared, images.device.shared_bytes() - declared),
        "cuFuncSetAttribute");
  return function;
}

using Versions = std::map<const Library*, std::set<int64_t>>;  // that engines were timed with

void collect_versions(const Program& program, Versions& versions) {
  for (const Step& step : program.steps) {
    const auto* kernel = step.as<KernelStep>();
    const Library* library = kernel != nullptr ? called_library(kernel->launch) : nullptr;
    if (library != nullptr) versions[library].insert(kernel->launch.constants[kLibraryVersion]);
  }
  for (const Program& nested : program.nested) collect_versions(nested, versions);
}

// The library's ranking differs from version to version, and with it what its choices are.
std::string note_of_library(const Library& library, std::set<int64_t> versions) {
  const char* reason = nullptr;
  const int64_t own = find_library(library, &reason);
  if (own == 0) throw_no_library(library, reason);
  versions.erase(own);
  if (versions.empty()) return {};
  return fmt::format(
      "its {} were timed with {} {}, and this is {}: the library's first choice is taken for each",
      library.calls, library.files.name, *versions.begin(), own);
}

std::string note_of_libraries(const EngineData& data, const std::set<const Library*>& called) {
  Versions versions;
  collect_versions(data.main, versions);
  std::string notes;
  for (const Library* library : called) {
    const std::string note = note_of_library(*library, versions[library]);
    notes += (notes.empty() || note.empty() ? "" : "; ") + note;
  }
  return notes;
}

}  // namespace

Images::~Images() {
  const CurrentContext current = device.enter_to_free();
  for (const Handle module : modules) device.driver().unload_module(module);
}

std::string missing(const Image& image, const Device& device) {
  if (form_for(image, device) == Form::kNone) return std::string(architecture_of(image));
  const Library* library = called_library(image);
  const char* reason = nullptr;
  if (library == nullptr || find_library(*library, &reason) != 0) return "";
  return fmt::format("{} ({})", library->files.name, reason);
}

std::unique_ptr<Images> load_images(const EngineData& data, Device& device) {
  const CurrentContext current = device.enter();
  auto images = std::make_unique<Images>(device);
  std::set<const Library*> called;
  for (const Image& image : data.images) {
    if (!is_ours(image)) {
      images->functions.push_back(nullptr);
      continue;
    }
    const Library* library = called_library(image);
    if (library != nullptr) called.insert(library);
    const auto code = code_for(image, device);
    if (code.empty() && !(library != nullptr && form_for(image, device) != Form::kNone))
      throw UserError("INGOT-U220",
                      fmt::format("the engine was built for GPUs with {}; this one has {}",
                                  architecture_of(image), device.architecture()),
                      fmt::format("build the engine for this GPU (device=cuda:{}), or for all from 8.0 on "
                                  "(device=cuda:compute_80)",
                                  device.architecture()));
    images->functions.push_back(library != nullptr ? nullptr : load_function(image, code, *images));
  }
  images->note = note_of_libraries(data, called);
  return images;
}

}  // namespace ingot::core::cuda
