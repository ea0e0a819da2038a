// SPDX-License-Identifier: Apache-2.0
#include "compiler/key.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "compiler/fingerprint.h"
#include "engine/engine_file.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/rewrites.h"
#include "support/hash.h"
#include "support/scanner.h"

namespace ingot::core {
namespace {

// Quoted, so that no text can look like another line of the key.
std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(quote(text));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_passes(const PassOptions& passes) {
  const BisectLimit limit = passes.bisect_limit.value_or(BisectLimit{.runs = -1});
  return fmt::format("passes disabled [{}] stop_after [{}] bisect {}.{}\n", quoted(passes.disabled),
                     passes.stop_after, limit.runs, limit.rewrites);
}

// Which inputs the states are bound to, in the order of the canonical graph.
std::string describe_mutated_inputs(const aten::Imported& model, const CanonicalGraph& canonical) {
  std::string text;
  for (const auto& [op, index] : canonical.sources) {
    if (op != &ops::state) continue;
    const std::optional<uint32_t> input = model.states[static_cast<size_t>(index)].mutated_input;
    text += input ? fmt::format("state of {}\n", *input) : "state\n";
  }
  return text;
}

std::string generators(const EngineBackends& backends, const Target& target) {
  std::string text(backends.own().backend->generator());
  if (const BackendTarget* host = backends.host()) text += fmt::format(" and {}", host->backend->generator());
  return text + backends.own().backend->libraries(target);
}

std::string describe_conditions(const std::vector<SizeCheck>& checks) {
  std::string text;
  for (const SizeCheck& check : checks)
    text += fmt::format("check {} {}\n", name_of(check.kind), to_string(check.condition));
  return text;
}

}  // namespace

std::string engine_key(const aten::Imported& model, const CanonicalGraph& canonical,
                       const EngineBackends& backends, const CompileOptions& options,
                       std::string_view tactics) {
  return fmt::format("ingot {}, engine format {}, sources {}\ntarget {}, code by {}\nweights {}\n",
                     INGOT_VERSION, kEngineFormatVersion, kFingerprint, options.target.text(),
                     generators(backends, options.target),
                     options.immutable_weights       ? "immutable"
                     : options.keep_original_weights ? "original"
                                                     : "prepared") +
         (tactics.empty() ? "" : fmt::format("tactics {}\n", hex(digest(as_bytes(tactics))))) +
         describe_passes(options.passes) + describe_mutated_inputs(model, canonical) +
         describe_conditions(model.checks) + to_string(canonical.graph, {.canonical = true});
}

bool names_decide(const CompileOptions& options) {
  const auto names_nodes = [](const std::string& entry) { return !parse_disabled(entry).nodes.empty(); };
  return !options.target.keep_precision.empty() || !options.target.backend_of.empty() ||
         std::ranges::any_of(options.passes.disabled, names_nodes);
}

}  // namespace ingot::core
