// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_convolution.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

constexpr size_t kMostConfigs = 64, kMostNotes = 32;
constexpr int kCudnnNotSupported = 3000;  // CUDNN_STATUS_NOT_SUPPORTED

// Sums are made in f32, in the order of the window or in one that does not depend on timing.
constexpr NumericalNote kUnacceptable[] = {NumericalNote::kDownConverts, NumericalNote::kReducesShort,
                                           NumericalNote::kFourier,      NumericalNote::kNondeterministic,
                                           NumericalNote::kWinograd,     NumericalNote::kWinograd4x4,
                                           NumericalNote::kWinograd6x6,  NumericalNote::kWinograd13x13};

}  // namespace

LibraryConvolution::LibraryConvolution(const Cudnn& library, LibraryHandle& handle,
                                       const ConvolutionShape& shape, int64_t choice, int64_t workspace_bytes)
    : library_(library), handle_(handle), shape_(shape), graph_(library, handle.handle, shape_) {
  choose(static_cast<size_t>(choice), workspace_bytes);
}

// The predicted fastest first, then those that run everywhere. Nothing says what the former make of addresses
// that are not aligned.
std::vector<CudnnDescriptor> LibraryConvolution::ranked() const {
  std::vector<CudnnDescriptor> configs;
  if (is_aligned()) append(HeuristicsMode::kA, configs);
  append(HeuristicsMode::kFallback, configs);
  return configs;
}

void LibraryConvolution::append(HeuristicsMode mode, std::vector<CudnnDescriptor>& configs) const {
  CudnnDescriptor heuristics(library_, DescriptorKind::kEngineHeuristics, "the ranking of engines");
  heuristics.set(CudnnAttribute::kHeuristicsGraph, graph_.graph())
      .set(CudnnAttribute::kHeuristicsMode, AttributeType::kHeuristicsMode, mode);
  if (!heuristics.try_finalize()) return;
  const int64_t count = heuristics.count(CudnnAttribute::kHeuristicsResults);
  std::vector<CudnnDescriptor> found;
  for (int64_t i = 0; i < std::clamp<int64_t>(count, 0, kMostConfigs); ++i)
    found.emplace_back(library_, DescriptorKind::kEngineConfig, "an engine's configuration");
  const size_t filled = heuristics.get(CudnnAttribute::kHeuristicsResults, found);
  for (size_t i = 0; i < filled; ++i) {
    if (is_acceptable(found[i])) configs.push_back(std::move(found[i]));
  }
}

bool LibraryConvolution::is_aligned() const { return shape_.alignment >= kConvolutionAlignment; }

bool LibraryConvolution::is_acceptable(const CudnnDescriptor& config) const {
  std::array<CudnnDescriptor, 1> engine = {
      CudnnDescriptor(library_, DescriptorKind::kEngine, "a configuration's engine")};
  if (config.get(CudnnAttribute::kConfigEngine, engine) == 0) return false;
  const std::vector<int> notes =
      engine[0].numbers(CudnnAttribute::kEngineNumericalNotes, AttributeType::kNumericalNote, kMostNotes);
  const auto has = [&](NumericalNote note) {
    return std::ranges::find(notes, static_cast<int>(note)) != notes.end();
  };
  if (!is_aligned() && has(NumericalNote::kTensorCore)) return false;
  return std::ranges::none_of(kUnacceptable, has);
}

// The choice, or the next one that runs.
void LibraryConvolution::choose(size_t choice, int64_t workspace_bytes) {
  std::vector<CudnnDescriptor> configs = ranked();
  if (configs.empty()) check(library_, kCudnnNotSupported, "ranking of engines that add up in a fixed order");
  const size_t first = std::min(choice, configs.size() - 1);
  for (size_t i = 0; i < configs.size(); ++i) {
    CudnnDescriptor& config = configs[(first + i) % configs.size()];
    auto plan = make_plan(config, workspace_bytes);
    if (!plan) continue;
    config_ = std::make_unique<CudnnDescriptor>(std::move(config));
    plan_ = std::make_unique<CudnnDescriptor>(std::move(*plan));
    return;
  }
  check(library_, kCudnnNotSupported, fmt::format("plan by any of {} engines", configs.size()).c_str());
}

std::optional<CudnnDescriptor> LibraryConvolution::make_plan(const CudnnDescriptor& config,
                                                             int64_t workspace_bytes) const {
  CudnnDescriptor plan(library_, DescriptorKind::kExecutionPlan, "the plan");
  plan.set(CudnnAttribute::kPlanHandle, AttributeType::kHandle, handle_.handle)
      .set(CudnnAttribute::kPlanConfig, config);
  if (!plan.try_finalize() || plan.number(CudnnAttribute::kPlanWorkspace) > workspace_bytes)
    return std::nullopt;
  return plan;
}

void LibraryConvolution::enqueue(const Arguments& own, Handle stream) const {
  const std::scoped_lock lock(handle_.mutex);
  std::vector<int64_t> ids;
  std::vector<const void*> pointers;
  const auto add = [&](TensorId id, const void* pointer) {
    ids.push_back(static_cast<int64_t>(id));
    pointers.push_back(pointer);
  };
  add(TensorId::kX, own.a);
  add(TensorId::kWeight, own.b);
  add(TensorId::kResult, own.result);
  if (shape_.has_bias) add(TensorId::kBias, own.bias);
  if (shape_.adds) add(TensorId::kAdded, own.added);
  CudnnDescriptor pack(library_, DescriptorKind::kVariantPack, "the addresses");
  pack.set(CudnnAttribute::kPackIds, ids)
      .set(CudnnAttribute::kPackPointers, AttributeType::kPointer, static_cast<int64_t>(pointers.size()),
           pointers.data())
      .set(CudnnAttribute::kPackWorkspace, AttributeType::kPointer, own.workspace)
      .finalize();
  check(library_, library_.set_stream(own.library, stream), "cudnnSetStream");
  check(library_, library_.execute(own.library, plan_->handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace ingot::core::cuda
