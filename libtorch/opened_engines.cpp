// SPDX-License-Identifier: Apache-2.0
#include "opened_engines.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <optional>
#include <utility>

namespace ingot::torch_operators {

namespace {

constexpr std::pair<DType, at::ScalarType> kDTypes[] = {
    {DType::kBool, at::kBool},         {DType::kU8, at::kByte},
    {DType::kI8, at::kChar},           {DType::kI16, at::kShort},
    {DType::kI32, at::kInt},           {DType::kI64, at::kLong},
    {DType::kF16, at::kHalf},          {DType::kBF16, at::kBFloat16},
    {DType::kF32, at::kFloat},         {DType::kF64, at::kDouble},
    {DType::kU16, at::kUInt16},        {DType::kU32, at::kUInt32},
    {DType::kU64, at::kUInt64},        {DType::kE4M3, at::kFloat8_e4m3fn},
    {DType::kE5M2, at::kFloat8_e5m2},  {DType::kC64, at::kComplexFloat},
    {DType::kC128, at::kComplexDouble}};

DType dtype_of(at::ScalarType type) {
  for (const auto& [ours, theirs] : kDTypes) {
    if (theirs == type) return ours;
  }
  TORCH_CHECK(false, "ingot::run takes no tensors of ", type);
}

at::ScalarType scalar_type_of(DType dtype) {
  for (const auto& [ours, theirs] : kDTypes) {
    if (ours == dtype) return theirs;
  }
  TORCH_CHECK(false, "an output of the engine has ", bit_width(dtype), " bits an element, which torch lacks");
}

Tensor view_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu(), "ingot::run takes tensors in host memory, not on ", tensor.device());
  return Tensor(tensor.data_ptr(), dtype_of(tensor.scalar_type()), tensor.sizes().vec(),
                tensor.strides().vec());
}

}  // namespace

OpenedEngine::OpenedEngine(Engine engine)
    : engine_(std::move(engine)),
      outputs_(engine_.outputs().size()),
      has_states_(!engine_.states().empty()) {}

std::shared_ptr<Context> OpenedEngine::take_context() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) idle_.push_back(std::make_unique<Context>(engine_));
  Context* context = idle_.back().release();
  idle_.pop_back();
  return {context, [this](Context* used) {
            const std::lock_guard giving_back(mutex_);
            idle_.emplace_back(used);
          }};
}

std::vector<at::Tensor> OpenedEngine::run(const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> plain;  // conjugated and negated views are written out
  std::vector<Tensor> views;
  for (const at::Tensor& input : inputs) plain.push_back(input.resolve_conj().resolve_neg());
  for (const at::Tensor& input : plain) views.push_back(view_of(input));
  std::vector<at::Tensor> outputs(outputs_);
  std::unique_lock alone(state_, std::defer_lock);
  if (has_states_) alone.lock();
  const std::shared_ptr<Context> context = take_context();
  const auto allocate = [&](size_t index, DType dtype, std::span<const int64_t> shape,
                            size_t bytes) -> void* {
    outputs[index] = at::empty(at::IntArrayRef(shape.data(), shape.size()), scalar_type_of(dtype));
    return bytes == 0 ? &outputs[index] : outputs[index].data_ptr();  // null would be a refusal
  };
  context->run_with(views, allocate);
  return outputs;
}

std::shared_ptr<OpenedEngine> OpenedEngines::of(const at::Tensor& content) {
  TORCH_CHECK(content.scalar_type() == at::kByte && content.is_contiguous() && content.device().is_cpu(),
              "the engine of ingot::run must be a dense tensor of uint8 in host memory");
  const std::lock_guard lock(mutex_);
  const void* address = content.const_data_ptr();
  std::erase_if(entries_,
                [&](const auto& each) { return each.first != address && each.second.tensor.expired(); });
  const c10::weak_intrusive_ptr<at::TensorImpl> watched(content.getIntrusivePtr());
  if (const auto found = entries_.find(address); found != entries_.end()) {
    if (found->second.tensor.expired()) found->second.tensor = watched;  // another view of the same memory
    return found->second.engine;
  }
  const auto kept = std::make_shared<const c10::Storage>(content.storage());
  const auto* first = static_cast<const std::byte*>(address);
  Engine engine = Engine::load({first, static_cast<size_t>(content.numel())}, kept);
  auto opened = std::make_shared<OpenedEngine>(std::move(engine));
  entries_.emplace(address, Entry{watched, opened});
  return opened;
}

}  // namespace ingot::torch_operators
