// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include "report/page_data.h"

namespace ingot::core::report {
namespace {

constexpr double kWidth = 1000, kHeight = 400;  // of the chart, in units of its own
constexpr size_t kColors = 6;

// A place in the chart: steps from left to right, bytes of the arena from below.
Data buffer_data(const Json& buffer, size_t index, double first_step, double steps, double arena) {
  const double first = number_of(buffer, "first"), last = number_of(buffer, "last"),
               bytes = number_of(buffer, "bytes"), offset = number_of(buffer, "offset");
  Data data;
  for (const char* name : {"name", "type"}) data.set(name, text_of(buffer, name));
  data.set("color", std::to_string(index % kColors));
  data.set("x", fmt::format("{:.1f}", (first - first_step) / steps * kWidth));
  data.set("w", fmt::format("{:.1f}", std::max(0.0, last - first + 1) / steps * kWidth));
  data.set("y", fmt::format("{:.1f}", kHeight - (offset + bytes) / arena * kHeight));
  data.set("h", fmt::format("{:.1f}", std::max(0.0, bytes) / arena * kHeight));
  data.set("bytes", readable_bytes(bytes));
  data.set("exact", readable_count(bytes));
  data.set("offset", readable_count(offset));
  data.set("first", readable_count(first));
  data.set("last", readable_count(last));
  return data;
}

Data memory_data(const TitledProgram& titled, const Json& program) {
  const Json& buffers = array_of(program, "arena");
  const double arena = std::max(1.0, number_of(program, "arena_bytes"));
  double first = buffers.empty() ? 0 : number_of(buffers[0], "first"), last = first;
  for (const Json& buffer : buffers) {
    first = std::min(first, number_of(buffer, "first"));
    last = std::max(last, number_of(buffer, "last"));
  }
  Data rows = empty_list();
  for (size_t i = 0; i < buffers.size(); ++i)
    rows << buffer_data(buffers[i], i, first, last - first + 1, arena);
  Data data;
  data.set("title", titled.title);
  data.set("summary",
           fmt::format("The arena of {} has {} at the typical sizes; {} are live at once, and without "
                       "sharing memory its {} buffers would take {}.",
                       titled.title, readable_bytes(number_of(program, "arena_bytes")),
                       readable_bytes(number_of(program, "live_bytes")), buffers.size(),
                       readable_bytes(number_of(program, "buffer_bytes"))));
  data.set("label", fmt::format("Chart of the arena of {}: {} buffers over the steps {} to {}", titled.title,
                                buffers.size(), readable_count(first), readable_count(last)));
  data.set("width", readable_count(kWidth));
  data.set("height", readable_count(kHeight));
  data.set("first_step", readable_count(first));
  data.set("last_step", readable_count(last));
  data.set("arena", readable_count(arena));
  data.set("has_buffers", !buffers.empty());
  data.set("buffers", rows);
  return data;
}

}  // namespace

void add_memory(Data& engine, const Json& inspect) {
  Data memories = empty_list();
  for (const TitledProgram& titled : programs_of(inspect)) {
    const bool is_main = titled.program == &object_of(inspect, "main");
    if (is_main || !array_of(*titled.program, "arena").empty())
      memories << memory_data(titled, *titled.program);
  }
  engine.set("memories", memories);
}

}  // namespace ingot::core::report
