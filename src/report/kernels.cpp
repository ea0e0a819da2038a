// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "report/page_data.h"

namespace ingot::core::report {
namespace {

constexpr size_t kMostLines = 3;  // of the model that are spelled out for a kernel

// The nodes of the model that a step computes.
std::vector<const Json*> nodes_of(const Json& step, const Json& nodes) {
  std::vector<const Json*> found;
  for (const Json& id : array_of(step, "nodes"))
    found.push_back(&nodes.at(static_cast<size_t>(integer_of(id))));
  return found;
}

struct KernelUse {
  size_t steps = 0;
  std::vector<std::string> ops, lines;  // in the order of their first use, without duplicates
};

void add_new(std::vector<std::string>& texts, const std::string& text) {
  if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

Data kernel_data(const Json& kernel, const KernelUse& use) {
  Data data, lines = empty_list();
  const size_t shown = std::min(use.lines.size(), kMostLines);
  for (size_t i = 0; i < shown; ++i) lines << Data("text", use.lines[i]);
  data.set("name", text_of(kernel, "name"));
  data.set("steps", std::to_string(use.steps));
  data.set("bytes", readable_bytes(number_of(kernel, "bytes")));
  data.set("ops", fmt::format("{}", fmt::join(use.ops, ", ")));
  data.set("lines", lines);
  data.set("more", shown < use.lines.size() ? fmt::format("and {} more", use.lines.size() - shown) : "");
  return data;
}

Data step_data(const Json& step, size_t number, const Json& nodes) {
  Data data, rows = empty_list();
  for (const Json* node : nodes_of(step, nodes)) {
    Data row;
    row.set("op", text_of(*node, "op"));
    row.set("source", short_line(text_of(*node, "source")));
    rows << row;
  }
  const std::string kernel = text_of(step, "kernel");
  data.set("number", std::to_string(number));
  data.set("name", text_of(step, "name"));
  data.set("kind", fmt::format("{}, {}", text_of(step, "kind"), text_of(step, "runs_on")));
  data.set("what", kernel.empty() ? text_of(step, "routine") : kernel);
  data.set("nodes", rows);
  data.set("operations", text_of(step, "operations"));
  data.set("bytes", text_of(step, "bytes"));
  return data;
}

}  // namespace

void add_kernels(Data& engine, const Json& inspect) {
  const Json &nodes = array_of(inspect, "nodes"), &kernels = array_of(inspect, "kernels");
  std::map<size_t, KernelUse> uses;
  std::vector<size_t> order;
  Data programs = empty_list();
  for (const auto& [title, program] : programs_of(inspect)) {
    const Json& steps = array_of(*program, "steps");
    Data rows = empty_list();
    for (size_t i = 0; i < steps.size(); ++i) {
      rows << step_data(steps[i], i, nodes);
      if (!steps[i].contains("image")) continue;
      const auto image = static_cast<size_t>(integer_of(steps[i]["image"]));
      if (!uses.contains(image)) order.push_back(image);
      KernelUse& use = uses[image];
      ++use.steps;
      for (const Json* node : nodes_of(steps[i], nodes)) {
        add_new(use.ops, text_of(*node, "op"));
        add_new(use.lines, short_line(text_of(*node, "source")));
      }
    }
    Data data;
    data.set("title", fmt::format("{}: {} step{}", title, steps.size(), steps.size() == 1 ? "" : "s"));
    data.set("steps", rows);
    if (!steps.empty()) programs << data;
  }
  Data list = empty_list();
  for (const size_t image : order) list << kernel_data(kernels.at(image), uses[image]);
  engine.set("kernels", list);
  engine.set("programs", programs);
}

}  // namespace ingot::core::report
