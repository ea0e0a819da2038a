// SPDX-License-Identifier: Apache-2.0
#include "compiler/key.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "compiler/canonical_graph.h"
#include "compiler/fingerprint.h"
#include "compiler/name_symbols.h"
#include "compiler/other_tensors.h"
#include "compiler/output_names.h"
#include "engine/engine_file.h"
#include "ir/scanner.h"
#include "ir/text.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

// Quoted, so that no text can look like another line of the key.
std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(quote(text));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string quoted(const std::vector<CallSlot>& slots) {
  std::vector<std::string> texts;
  for (const CallSlot& slot : slots) texts.push_back(to_string(slot));
  return quoted(texts);
}

std::string names_of(std::span<Value* const> values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name);
  return quoted(names);
}

std::string describe_passes(const PassOptions& passes) {
  const BisectLimit limit = passes.bisect_limit.value_or(BisectLimit{.runs = -1});
  return fmt::format("passes disabled [{}] stop_after [{}] bisect {}.{}\n", quoted(passes.disabled),
                     passes.stop_after, limit.runs, limit.rewrites);
}

// The model's signature, and the engine's names of inputs and outputs.
std::string describe_call(const aten::Program& program, const aten::Imported& model) {
  return fmt::format("arguments [{}]\ninput_tree {}\noutput_tree {}\ninput_slots [{}]\noutput_slots [{}]\n",
                     quoted(program.argument_names), quote(program.input_tree), quote(program.output_tree),
                     quoted(model.input_slots), quoted(model.output_slots)) +
         fmt::format("inputs [{}]\noutputs [{}]\n", names_of(model.graph.inputs()),
                     quoted(output_names(program, model)));
}

std::string describe_initial_states(const std::vector<aten::StateSource>& states) {
  std::string text;
  for (const aten::StateSource& state : states) {
    std::string initial = "none";
    if (state.initial) {
      const Tensor dense = to_dense(state.initial->view);
      initial = fmt::format("{}[{}] sha256:{}", name(dense.dtype), fmt::join(dense.shape, ","),
                            hex(digest({dense.data.get(), dense.bytes()})));
    }
    text += fmt::format("state {} initial {}\n", quote(state.name), initial);
  }
  return text;
}

// Which inputs the states are bound to.
std::string describe_mutated_inputs(const aten::Imported& model) {
  std::string text;
  for (const aten::StateSource& state : model.states)
    text += state.mutated_input ? fmt::format("state of {}\n", *state.mutated_input) : "state\n";
  return text;
}

std::string describe_conditions(const std::vector<SizeCheck>& checks,
                                const std::map<std::string, Dim>& symbols) {
  std::string text;
  for (const SizeCheck& check : checks)
    text += fmt::format("check {} {}\n", name_of(check.kind), to_string(renamed(check.condition, symbols)));
  return text;
}

std::string describe_messages(const std::vector<SizeCheck>& checks) {
  std::string text;
  for (const SizeCheck& check : checks)
    text += fmt::format("check {} {} {}\n", quote(check.message), quote(check.node), quote(check.source));
  return text;
}

}  // namespace

std::string engine_key(const aten::Imported& model, const Backend& backend, const CompileOptions& options,
                       std::string_view tactics) {
  const CanonicalGraph canonical = canonicalize(model.graph);
  return fmt::format("ingot {}, engine format {}, sources {}\ntarget {}, code by {}\nweights {}\n",
                     INGOT_VERSION, kEngineFormatVersion, kFingerprint, options.target.text(),
                     backend.generator(),
                     options.immutable_weights       ? "immutable"
                     : options.keep_original_weights ? "original"
                                                     : "prepared") +
         (tactics.empty() ? "" : fmt::format("tactics {}\n", hex(digest(as_bytes(tactics))))) +
         describe_passes(options.passes) + describe_mutated_inputs(model) +
         describe_conditions(model.checks, canonical.symbols) +
         to_string(canonical.graph, {.canonical = true});
}

std::string engine_binding(const aten::Program& program, const aten::Imported& model) {
  std::string text = "origin " + quote(program.origin) + "\n" + describe_call(program, model) +
                     describe_initial_states(model.states) + describe_messages(model.checks) +
                     describe_tensors(program, model);
  for (const auto& node : model.graph.nodes())
    text += quote(node->name) + " " + quote(node->source.to_string()) + "\n";
  return text + to_string(model.graph);
}

}  // namespace ingot::core
