// SPDX-License-Identifier: Apache-2.0
#include "partition/choose_sides.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "ops/alias.h"
#include "partition/minimum_cut.h"
#include "support/error.h"
#include "support/name_pattern.h"

namespace ingot::core {
namespace {

bool names(const BackendChoice& choice, const Node& node) {
  return fits_pattern(choice.pattern, node.name) || fits_pattern(choice.pattern, node.op->name);
}

// Those around it decide for what is inside of a branch or loop.
void set_named_sides(Graph& graph, const std::vector<BackendChoice>& choices, const std::vector<Side>& sides,
                     std::vector<bool>& used, std::optional<size_t> around) {
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource)) continue;
    std::optional<size_t> found = around;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (!names(choices[i], *node)) continue;
      used[i] = true;
      if (!found) found = i;
    }
    if (found) node->side = sides[*found];
    for (const auto& nested : node->graphs) set_named_sides(*nested, choices, sides, used, found);
  }
}

// What is known of one node on both sides.
struct Judged {
  Node* node;
  Side only = Side::kAny;  // where it has to run
  bool named = false;      // by backend_of
  double device_ns = 0, host_ns = 0;
  std::string reason;  // for the host, if the device does not run it, or slowly
};

double time_of(const Node& node, const Support& support, const BackendTarget& on, const SymbolValues& sizes) {
  return support.own_ns > 0 ? support.own_ns : on.backend->predicted_ns(node, sizes, on.target);
}

Judged judge(Node& node, const EngineBackends& backends, const SymbolValues& sizes) {
  const BackendTarget &device = backends.own(), &host = *backends.host();
  constexpr std::string_view kNamed = "backend_of names it";
  const bool named = node.side != Side::kAny;
  if (alias_offset(node))
    return {.node = &node, .only = node.side, .named = named, .reason = std::string(named ? kNamed : "")};
  const Support own = device.backend->supports(node, sizes, device.target);
  const Support other = host.backend->supports(node, sizes, host.target);
  Judged judged{.node = &node, .only = node.side, .named = named, .reason = own.reason};
  if (own.runs_on_host) {
    judged.only = Side::kHost;
    judged.reason = "a routine of the host computes it";
  } else if (named) {
    judged.reason = kNamed;
  } else if (own.answer == Support::Answer::kNo) {
    judged.only = other.answer == Support::Answer::kNo ? Side::kDevice : Side::kHost;
  } else if (other.answer == Support::Answer::kNo) {
    judged.only = Side::kDevice;
  }
  judged.device_ns = time_of(node, own, device, sizes);
  judged.host_ns = time_of(node, other, host, sizes);
  return judged;
}

// The points of the cut are nodes; what belongs to the sink runs on the host.
class Division {
 public:
  Division(const Graph& graph, std::vector<Judged>& judged, const std::set<const Node*>& once)
      : graph_(graph), sizes_(typical_sizes(graph.symbols)), judged_(judged), once_(once) {}

  void run() {
    for (const Judged& each : judged_) add(each);
    for (const Value* input : graph_.inputs()) add_crossings(*input, cut_.source());
    for (const auto& node : graph_.nodes()) {
      if (once_.contains(node.get())) continue;  // weights are copied when they are loaded
      for (const Value* result : node->results) add_crossings(*result, point_of(node.get()));
    }
    const std::vector<bool> on_host = cut_.solve();
    for (const Judged& each : judged_)
      each.node->side = on_host[points_.at(each.node)] ? Side::kHost : Side::kDevice;
  }

 private:
  static int64_t cost(double nanoseconds) {
    constexpr double kMost = 1e15;
    return static_cast<int64_t>(std::clamp(nanoseconds, 0.0, kMost));
  }

  void add(const Judged& judged) {
    const size_t point = points_[judged.node] = cut_.add_point();
    const bool runs = !once_.contains(judged.node);
    cut_.add_edge(point, cut_.sink(),
                  judged.only == Side::kHost ? MinimumCut::kNever
                  : runs                     ? cost(judged.device_ns)
                                             : 0);
    cut_.add_edge(cut_.source(), point,
                  judged.only == Side::kDevice ? MinimumCut::kNever
                  : runs                       ? cost(judged.host_ns)
                                               : 0);
  }

  // Branches, loops, states and the caller are on the device.
  size_t point_of(const Node* node) const {
    const auto found = points_.find(node);
    return found != points_.end() ? found->second : cut_.source();
  }

  // A value is copied once, however many read it there.
  void add_crossings(const Value& value, size_t maker) {
    const int64_t copy = cost(copy_ns(value, sizes_));
    const size_t to_host = cut_.add_point(), to_device = cut_.add_point();
    cut_.add_edge(maker, to_host, copy);
    cut_.add_edge(to_device, maker, copy);
    const auto read_by = [&](size_t reader) {
      cut_.add_edge(to_host, reader, MinimumCut::kNever);
      cut_.add_edge(reader, to_device, MinimumCut::kNever);
    };
    for (const Node* user : value.users) read_by(point_of(user));
    if (graph_.is_output(&value)) read_by(cut_.source());
  }

  const Graph& graph_;
  const SymbolValues sizes_;
  std::vector<Judged>& judged_;
  const std::set<const Node*>& once_;
  MinimumCut cut_;
  std::map<const Node*, size_t> points_;
};

std::string reason_of(const Judged& judged) {
  constexpr double kNanoseconds = 1000;
  if (judged.only != Side::kAny) return judged.reason;
  if (judged.reason.empty()) return "what is around it runs on the host: it saves copies";
  return fmt::format("{}: {:.0f} us on the device, {:.0f} us on the host, as predicted", judged.reason,
                     judged.device_ns / kNanoseconds, judged.host_ns / kNanoseconds);
}

}  // namespace

bool is_named(const Node& node, const Target& target) {
  return std::ranges::any_of(target.backend_of,
                             [&](const BackendChoice& choice) { return names(choice, node); });
}

double copy_ns(const Value& value, const SymbolValues& sizes) {
  constexpr double kWait = 20e3, kBytes = 12;  // ns, and per ns
  return kWait + static_cast<double>(evaluate(storage_bytes(value.type), sizes)) / kBytes;
}

std::vector<std::string> set_named_sides(Graph& graph, const EngineBackends& backends) {
  const std::vector<BackendChoice>& choices = backends.own().target.backend_of;
  std::vector<Side> sides;
  for (const BackendChoice& choice : choices) {
    sides.push_back(backends.side_of(choice.backend));
    if (sides.back() != Side::kAny) continue;
    throw UserError(
        "INGOT-U002",
        fmt::format(
            "option \"backend_of\" cannot give \"{}\" to the backend \"{}\": the engine is for \"{}\"{}",
            choice.pattern, choice.backend, backends.own().target.backend,
            backends.are_two() ? " and its host" : " alone"),
        backends.are_two()
            ? fmt::format("use \"{}\" or \"cpu\"", backends.own().target.backend)
            : "build for a device with an Ingot that has the compiler for CPUs, or leave the option out");
  }
  std::vector<bool> used(choices.size());
  set_named_sides(graph, choices, sides, used, std::nullopt);
  std::vector<std::string> unused;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!used[i]) unused.push_back(choices[i].pattern);
  }
  return unused;
}

void choose_sides(Graph& graph, const EngineBackends& backends, const std::set<const Node*>& once,
                  ChosenBackends& chosen) {
  if (!backends.are_two()) return;
  const SymbolValues sizes = typical_sizes(graph.symbols);
  std::vector<Judged> judged;
  bool is_divided = false;
  for (const auto& node : graph.nodes()) {
    const Traits traits = node->op->traits;
    if (traits.has(Trait::kSource) || traits.has(Trait::kControlFlow)) continue;
    judged.push_back(judge(*node, backends, sizes));
    is_divided = is_divided || judged.back().only == Side::kHost || !judged.back().reason.empty();
  }
  if (!is_divided) return;
  Division(graph, judged, once).run();
  for (const Judged& each : judged) {
    const Node& node = *each.node;
    if (node.side != Side::kHost && !each.named) continue;
    chosen.push_back({node.name, std::string(node.op->name), node.source.to_string(),
                      std::string(backends.of(node).backend->name()), reason_of(each)});
  }
}

}  // namespace ingot::core
