// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_errors.h"

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

[[noreturn]] void fail(const EngineData& data, const Step& step, std::string_view code, std::string message,
                       std::string advice) {
  ErrorDetails details{.code = code, .message = std::move(message), .advice = std::move(advice)};
  if (!step.nodes.empty() && step.nodes[0] < data.nodes.size()) {
    details.node = data.nodes[step.nodes[0]].name;
    details.source_line = data.nodes[step.nodes[0]].source;
  }
  throw UserError(std::move(details));
}

const Step* find_step(const Program& program, const Launch* launch) {
  for (const Step& step : program.steps) {
    const auto* kernel = step.as<KernelStep>();
    if (kernel != nullptr && &kernel->launch == launch) return &step;
  }
  for (const Program& nested : program.nested) {
    if (const Step* found = find_step(nested, launch)) return found;
  }
  return nullptr;
}

}  // namespace

void fail_launch(const EngineData& data, const Program& program, const CallFailure& failure) {
  constexpr int64_t kIndexOutOfRange = 1;
  const Step* found = find_step(program, failure.launch);
  invariant(found != nullptr, "a queue reports a launch that is not in the program");
  const Step& step = *found;
  if (failure.status != kIndexOutOfRange)
    throw InternalError(fmt::format("the kernel of '{}' returned the status {}", step.name, failure.status));
  fail(data, step, "INGOT-U310", fmt::format("an index is out of range in '{}'", step.name),
       "check the inputs for invalid indices, such as token ids beyond the vocabulary");
}

void fail_routine(const EngineData& data, const Step& step, const UserError& error) {
  const ErrorDetails& details = error.details();
  fail(data, step, details.code, details.message, details.advice);
}

void fail_routine(const EngineData& data, const Step& step, const DeviceError& error) {
  const ErrorDetails& details = error.details();
  const bool is_known = !step.nodes.empty() && step.nodes[0] < data.nodes.size();
  throw DeviceError(
      details.code,
      is_known ? fmt::format("{} (in {})", details.message, data.nodes[step.nodes[0]].name) : details.message,
      details.advice);
}

void fail_value(const EngineData& data, const Step& step, const std::string& cause) {
  fail(data, step, "INGOT-U311", fmt::format("'{}' {}", step.name, cause), "");
}

}  // namespace ingot::core
