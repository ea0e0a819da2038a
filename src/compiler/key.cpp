// SPDX-License-Identifier: Apache-2.0
#include "compiler/key.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

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

std::string names_of(std::span<Value* const> values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name);
  return quoted(names);
}

std::string describe_passes(const PassOptions& passes) {
  return fmt::format("passes disabled [{}] stop_after [{}] bisect {}\n", quoted(passes.disabled),
                     passes.stop_after, passes.bisect_limit);
}

// The model's signature, and the engine's names of inputs and outputs.
std::string describe_call(const aten::Program& program, const aten::Imported& model) {
  return fmt::format("arguments [{}]\ninput_tree {}\noutput_tree {}\nliterals [{}]\noutput_literals [{}]\n",
                     quoted(program.argument_names), quote(program.input_tree), quote(program.output_tree),
                     quoted(model.input_literals), quoted(model.output_literals)) +
         fmt::format("inputs [{}]\noutputs [{}]\n", names_of(model.graph.inputs()),
                     quoted(output_names(program, model)));
}

std::string describe_states(const std::vector<aten::StateSource>& states) {
  std::string text;
  for (const aten::StateSource& state : states) {
    std::string initial = "none";
    if (state.initial) {
      const Tensor dense = to_dense(*state.initial);
      initial = fmt::format("{}[{}] sha256:{}", name(dense.dtype), fmt::join(dense.shape, ","),
                            hex(digest({dense.data.get(), dense.bytes()})));
    }
    text += fmt::format("state {} input {} initial {}\n", quote(state.name), state.mutated_input, initial);
  }
  return text;
}

std::string describe_checks(const std::vector<SizeCheck>& checks) {
  std::string text;
  for (const SizeCheck& check : checks)
    text += fmt::format("check {} {} {}\n", name_of(check.kind), to_string(check.condition),
                        quote(check.message));
  return text;
}

}  // namespace

std::string engine_key(const aten::Program& program, const aten::Imported& model, const Backend& backend,
                       const CompileOptions& options) {
  return fmt::format("ingot {}, engine format {}\ntarget {}, code by {}\nweights {}\n", INGOT_VERSION,
                     kEngineFormatVersion, options.target.text(), backend.generator(),
                     options.keep_original_weights ? "original" : "prepared") +
         describe_passes(options.passes) + describe_call(program, model) + describe_states(model.states) +
         describe_checks(model.checks) + to_string(model.graph, {.canonical = true});
}

}  // namespace ingot::core
