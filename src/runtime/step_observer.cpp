// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_observer.h"

namespace ingot::core {
namespace {

// Strides in elements of a layout that permutes axes.
std::vector<int64_t> strides_of(const Layout& layout, std::span<const int64_t> shape) {
  if (layout.is_row_major()) return row_major_strides(shape);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (auto axis = layout.axes.rbegin(); axis != layout.axes.rend(); ++axis) {
    const auto dim = static_cast<size_t>(axis->dim);
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

void show_buffer(const StepObserver& observer, const Executable& executable, const RunPlan& plan, size_t step,
                 BufferId id, const LoadedBackends& backends) {
  const Buffer& buffer = executable.program->buffers[id];
  std::byte* data = plan.frame.pointers[id];
  if (data == nullptr || !buffer.type.layout.is_permutation()) return;
  TensorView view{.data = data, .dtype = buffer.type.dtype, .shape = {}, .strides = {}};
  for (const DimSlot slot : executable.buffers[id].shape) {
    if (!is_known(*executable.dims, plan, slot)) return;  // the step is about to bind it
    view.shape.push_back(plan.values[slot]);
  }
  view.strides = strides_of(buffer.type.layout, view.shape);
  std::shared_ptr<std::byte> on_host;
  if (DeviceMemory* memory = backends.memories[place_number(buffer.place)]; memory != nullptr) {
    const auto bytes = static_cast<size_t>(plan.values[executable.buffers[id].bytes]);
    on_host = allocate_memory(bytes);
    memory->copy(on_host.get(), data, bytes);
    view.data = on_host.get();
  }
  observer.observe(observer.user, step, buffer.name, to_dense(view));
}

}  // namespace

void show_results(const StepObserver& observer, const Executable& executable, const RunPlan& plan,
                  size_t index, const LoadedBackends& backends) {
  const ExecutableStep& step = executable.steps[index];
  for (uint32_t i = 0; i < step.argument_count; ++i) {
    const BufferId id = executable.arguments[step.first_argument + i];
    if (step.step->uses[i].writes && id != kNoId)
      show_buffer(observer, executable, plan, index, id, backends);
  }
}

}  // namespace ingot::core
