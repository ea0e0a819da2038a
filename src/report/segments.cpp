// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/core.h>

#include "report/page_data.h"

namespace ingot::core::report {
namespace {

bool is_torch(const Json& segment) { return text_of(segment, "backend") == "torch"; }

// What a build says about its nodes, by name.
std::map<std::string, std::string> remarks_of(const Json& rows, const auto& remark) {
  std::map<std::string, std::string> remarks;
  for (const Json& row : rows) remarks[text_of(row, "node")] = remark(row);
  return remarks;
}

std::string precision_of(const Json& row) {
  const std::string reason = text_of(row, "reason"), operands = text_of(row, "operands"),
                    weight = text_of(row, "weight");
  if (!reason.empty()) return "f32: " + reason;
  return operands == weight ? operands : fmt::format("{} with weights of {}", operands, weight);
}

std::string slowness_of(const Json& row) {
  const double own = number_of(row, "own_ns") / 1e6, peer = number_of(row, "peer_ns") / 1e6;
  return fmt::format("{}; predicted {:.3g} ms per run, torch {:.3g} ms", text_of(row, "reason"), own, peer);
}

std::string backend_of_row(const Json& row) {
  return fmt::format("{}: {}", text_of(row, "backend"), text_of(row, "reason"));
}

std::string remark_on(const Json& node) {
  std::string remark = text_of(node, "reason");
  for (const auto& [label, text] :
       {std::pair("slow: ", text_of(node, "slow")), std::pair("computed in ", text_of(node, "precision")),
        std::pair("run by ", text_of(node, "backend"))}) {
    if (!text.empty()) remark += (remark.empty() ? "" : "; ") + (label + text);
  }
  return remark;
}

Data node_data(const Json& node, Codes& codes) {
  Data data;
  data.set("name", text_of(node, "name"));
  data.set("op", text_of(node, "op"));
  data.set("source", short_line(text_of(node, "source")));
  const std::string remark = remark_on(node);
  data.set("remark", remark);
  data.set("codes", codes_in(text_of(node, "code").empty() ? remark : text_of(node, "code"), codes));
  return data;
}

// Why a segment ends: what begins after it.
void add_end(Data& data, const Json* next, Codes& codes) {
  const Json& nodes = next == nullptr ? Json() : array_of(*next, "nodes");
  data.set("end_codes", empty_list());
  if (next == nullptr) {
    data.set("ends", "Ends with the program.");
  } else if (nodes.empty()) {
    data.set("ends", "Ends where the next segment begins.");
  } else {
    const Json& first = nodes[0];
    const std::string reason = text_of(first, "reason");
    data.set("ends", fmt::format("Ends before {} ({}), which {} runs{}{}", text_of(first, "name"),
                                 text_of(first, "op"), is_torch(*next) ? "torch" : "an engine",
                                 reason.empty() ? "." : ": ", reason));
    data.set("end_codes", codes_in(text_of(first, "code").empty() ? reason : text_of(first, "code"), codes));
  }
}

Data notes_on(const Json& segment) {
  Data notes = empty_list();
  size_t slow = 0;
  for (const Json& node : array_of(segment, "nodes")) slow += text_of(node, "slow").empty() ? 0 : 1;
  if (slow > 0) notes << Data("text", fmt::format("{} of them slow", slow));
  const double torch = number_of(segment, "torch_ms"), engine = number_of(segment, "engine_ms");
  if (engine > 0) notes << Data("text", fmt::format("{:.3f} ms per call, torch {:.3f} ms", engine, torch));
  return notes;
}

std::string counted(size_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

Json segments_of(const Json& report) {
  if (report.contains("segments")) return array_of(report, "segments");
  Json segments = Json::array();
  for (const Json& engine : array_of(report, "engines")) {
    const Json &inspect = object_of(engine, "inspect"), &build = object_of(engine, "build");
    const auto slow = remarks_of(array_of(build, "slow"), slowness_of);
    const auto precisions = remarks_of(array_of(build, "precisions"), precision_of);
    const auto backends = remarks_of(array_of(build, "backends"), backend_of_row);
    Json nodes = array_of(inspect, "nodes");
    for (Json& node : nodes) {
      const std::string name = text_of(node, "name");
      if (const auto found = slow.find(name); found != slow.end()) node["slow"] = found->second;
      if (const auto found = precisions.find(name); found != precisions.end())
        node["precision"] = found->second;
      if (const auto found = backends.find(name); found != backends.end()) node["backend"] = found->second;
    }
    const std::string target = text_of(inspect, "target");
    segments.push_back({{"backend", target.substr(0, target.find(':'))}, {"nodes", std::move(nodes)}});
  }
  return segments;
}

Data segment_data(const Json& segments, Codes& codes) {
  Data list = empty_list();
  for (size_t i = 0, engine = 0; i < segments.size(); ++i) {
    const Json& segment = segments[i];
    const Json& nodes = array_of(segment, "nodes");
    Data data;
    data.set("number", std::to_string(i));
    data.set("place", is_torch(segment)
                          ? "torch"
                          : fmt::format("engine {} ({})", engine++, text_of(segment, "backend")));
    data.set("count", counted(nodes.size(), "node"));
    data.set("notes", notes_on(segment));
    add_end(data, i + 1 < segments.size() ? &segments[i + 1] : nullptr, codes);
    Data rows = empty_list();
    for (const Json& node : nodes) rows << node_data(node, codes);
    data.set("nodes", rows);
    list << data;
  }
  return list;
}

std::string totals_of(const Json& segments) {
  size_t all = 0, in_engines = 0, engines = 0;
  for (const Json& segment : segments) {
    const size_t count = array_of(segment, "nodes").size();
    all += count;
    if (!is_torch(segment)) ++engines, in_engines += count;
  }
  // Rounded down: all nodes are 100 %, and only they.
  return fmt::format("Engines run {} % of the nodes ({} of {}): {}, {}.",
                     all == 0 ? 100 : 100 * in_engines / all, in_engines, all, counted(engines, "engine"),
                     counted(segments.size() - engines, "torch partition"));
}

}  // namespace ingot::core::report
