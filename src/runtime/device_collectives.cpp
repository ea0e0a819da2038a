// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_collectives.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "engine/group_uses.h"
#include "routines/collective_rows.h"
#include "routines/routines.h"
#include "runtime/routine_run.h"
#include "runtime/step_errors.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using Kind = DeviceCollective::Kind;
using routines::require_fit;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {
    {{"all_reduce", Kind::kAllReduce},
     {"reduce_scatter", Kind::kReduceScatter},
     {"all_gather", Kind::kAllGather},
     {"all_to_all", Kind::kAllToAll},
     {"broadcast", Kind::kBroadcast}}};

template <typename Table>
auto value_of(const Table& table, std::string_view word, std::string_view routine) {
  const auto found = std::ranges::find(table, word, [](const auto& row) { return row.first; });
  require_fit(found != table.end(), routine);
  return found->second;
}

size_t count_of(const TensorView& view) {
  size_t count = 1;
  for (const int64_t size : view.shape) count *= static_cast<size_t>(size);
  return count;
}
size_t dense_bytes_of(const TensorView& view) {
  return count_of(view) * (static_cast<size_t>(bit_width(view.dtype)) / 8);
}

const BoundGroups::Bound* group_named(const BoundGroups* groups, const std::string& name) {
  if (groups == nullptr) return nullptr;
  const auto found = std::ranges::find(groups->groups, name, &BoundGroups::Bound::name);
  return found == groups->groups.end() ? nullptr : &*found;
}

TensorView row_of(const TensorView& view) {
  require_fit(!view.shape.empty(), "all_to_all");
  TensorView row = view;
  row.shape[0] = 1;
  return row;
}

std::vector<size_t> bytes_by_rank(const RoutineCall& call, std::string_view name, const TensorView& view,
                                  size_t ranks) {
  const size_t row = dense_bytes_of(row_of(view));
  auto bytes =
      rows_by_rank(routines::attribute<std::string>(call, name), static_cast<size_t>(view.shape[0]), ranks);
  for (size_t& each : bytes) each *= row;
  return bytes;
}

// The rules of the routines on the host.
DeviceCollective describe(std::string_view name, const RoutineCall& call, Communicator* group) {
  require_fit(call.inputs.size() == 1 && call.outputs.size() == 1, name);
  const TensorView &input = call.inputs[0], &output = call.outputs[0];
  const auto ranks = group == nullptr ? size_t{1} : static_cast<size_t>(group->size());
  const size_t elements = count_of(input), results = count_of(output);
  DeviceCollective own{.kind = value_of(kKinds, name, name),
                       .dtype = input.dtype,
                       .group = ranks == 1 ? nullptr : group,
                       .elements = results,
                       .bytes = dense_bytes_of(input),
                       .sent = {},
                       .received = {}};
  require_fit(input.dtype == output.dtype && bit_width(input.dtype) >= 8, name);
  if (own.kind == Kind::kAllReduce || own.kind == Kind::kReduceScatter)
    own.reduction = value_of(kReductions, routines::attribute<std::string>(call, "reduction"), name);
  switch (own.kind) {
    case Kind::kReduceScatter:
      require_fit(!input.shape.empty() && static_cast<size_t>(input.shape[0]) % ranks == 0, name);
      require_fit(results * ranks == elements, name);
      break;
    case Kind::kAllGather:
      require_fit(results == elements * ranks, name);
      break;
    case Kind::kAllToAll:
      own.sent = bytes_by_rank(call, "sent", input, ranks);
      own.received = bytes_by_rank(call, "received", output, ranks);
      if (own.group == nullptr) break;
      own.elements = count_of(row_of(input));
      own.bytes = dense_bytes_of(row_of(input));
      break;
    case Kind::kBroadcast:
      own.source = static_cast<int>(routines::attribute<int64_t>(call, "source"));
      if (own.source < 0 || static_cast<size_t>(own.source) >= ranks)
        throw UserError("INGOT-U352", fmt::format("broadcast: the group has no rank {}", own.source));
      [[fallthrough]];
    case Kind::kAllReduce:
      require_fit(results == elements, name);
  }
  return own;
}

// The step's own group; null: of one rank.
const BoundGroups::Bound* group_of_step(const RunResources& resources, const Step& step) {
  const auto& routine = *step.as<RoutineStep>();
  const RoutineCall call{
      .inputs = {}, .outputs = {}, .attributes = routine.attributes, .pool = &resources.pool};
  const auto& name = routines::attribute<std::string>(call, "group");
  const auto* bound = group_named(resources.groups, name);
  const auto ranks = routines::attribute<int64_t>(call, "ranks");
  if (bound == nullptr && ranks != 1)
    throw UserError("INGOT-U350",
                    fmt::format("{}: no group of ranks is bound to '{}'", routine.routine, name),
                    "bind one when the context is made (docs/ranks.md)");
  return bound;
}

void resolve(const RunResources& resources, const ExecutableStep& step, Frame& frame, size_t index) {
  DeviceStep& own = frame.device_steps[index];
  const BoundGroups::Bound* bound = group_of_step(resources, *step.step);
  const auto& routine = *step.step->as<RoutineStep>();
  own.collective = describe(routine.routine,
                            {.inputs = frame.routines[index].inputs,
                             .outputs = frame.routines[index].outputs,
                             .attributes = routine.attributes,
                             .pool = &resources.pool},
                            bound == nullptr ? nullptr : bound->group.get());
  own.collective.image = routine.image;
  own.collective.with_next = routine.with_next;
  own.is_on_host = own.collective.group != nullptr && !bound->on_device;
  own.is_known = true;
  frame.calls[index].collective = &own.collective;
}

}  // namespace

bool has_device_collectives(const Program& program) {
  return std::ranges::any_of(program.steps, is_device_collective) ||
         std::ranges::any_of(program.nested, has_device_collectives);
}

void open_device_groups(BoundGroups& groups, Queue& queue,
                        const std::function<void(LogLevel level, const std::string& line)>& tell) {
  for (BoundGroups::Bound& bound : groups.groups) {
    if (bound.group->size() == 1) continue;
    const OpenedGroup opened = queue.open_group(*bound.group, groups.program);
    bound.on_device = opened.over_host.empty();
    if (!bound.on_device)
      tell(LogLevel::kWarning,
           fmt::format("collectives of the group '{}' go over the host: {}", bound.name, opened.over_host));
    else if (!opened.no_peers.empty())
      tell(LogLevel::kInfo,
           fmt::format("devices of the group '{}' do not reduce over each other's memory: {}", bound.name,
                       opened.no_peers));
  }
}

bool resolve_collectives(const RunResources& resources, const Executable& executable, Frame& frame,
                         const ExecutableSpan& span) {
  bool is_whole = true;
  for (uint32_t i = span.first; i < span.last; ++i) {
    const ExecutableStep& step = executable.steps[i];
    if (step.routine == nullptr) continue;
    try {
      if (!frame.device_steps[i].is_known) resolve(resources, step, frame, i);
    } catch (const UserError& error) {
      fail_routine(resources.data, *step.step, error);
    }
    is_whole = is_whole && !frame.device_steps[i].is_on_host;
  }
  return is_whole;
}

void run_collective_on_host(const RunResources& resources, const Executable& executable, Frame& frame,
                            size_t index) {
  const ExecutableStep& step = executable.steps[index];
  std::vector<std::byte*> on_device(step.argument_count), on_host(step.argument_count);
  std::vector<std::shared_ptr<std::byte>> memory;
  DeviceMemory* device = nullptr;
  for (uint32_t i = 0; i < step.argument_count; ++i) {
    const BufferId id = executable.arguments[step.first_argument + i];
    device = resources.backends.memories[place_number(executable.program->buffers[id].place)];
    const TensorView& view =
        step.step->uses[i].writes ? frame.routines[index].outputs[0] : frame.routines[index].inputs[0];
    memory.push_back(allocate_memory(std::max<size_t>(dense_bytes_of(view), 1)));
    on_device[i] = std::exchange(frame.pointers[id], memory.back().get());
    if (step.step->uses[i].reads) device->copy(memory.back().get(), on_device[i], dense_bytes_of(view));
  }
  const auto put_back = [&] {
    for (uint32_t i = 0; i < step.argument_count; ++i)
      frame.pointers[executable.arguments[step.first_argument + i]] = on_device[i];
  };
  try {
    run_routine(resources, executable, frame, index);
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
  for (uint32_t i = 0; i < step.argument_count; ++i)
    if (step.step->uses[i].writes)
      device->copy(on_device[i], memory[i].get(), dense_bytes_of(frame.routines[index].outputs[0]));
}

}  // namespace ingot::core
