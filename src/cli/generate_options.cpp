// SPDX-License-Identifier: Apache-2.0
#include "cli/generate_options.h"

#include <cmath>

#include "cli/shared_options.h"

namespace ingot::cli {

void add_generate(CLI::App& app, GenerateCommand& command) {
  CLI::App* sub =
      app.add_subcommand("generate", "Continue a sequence of tokens with an engine of a language model");
  add_engine(*sub, "engine", command.run.engine);
  sub->add_option("--ids", command.ids, "the tokens to continue: 464,3290,318")
      ->type_name("id,...")
      ->required();
  sub->add_option("--tokens", command.tokens, "how many to add at most")
      ->type_name("number")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str();
  sub->add_option("--stop", command.stop, "the token after which to stop; -1: none")
      ->type_name("id")
      ->capture_default_str();
  sub->add_option("--temperature", command.temperature, "0: the most likely token; above: chosen at random")
      ->type_name("number")
      ->check([](const std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
        return good ? "" : "'" + text + "' is not a temperature: write 0 or more";
      })
      ->capture_default_str();
  sub->add_option("--top-k", command.top_k, "choose among so many of the most likely tokens; 0: all")
      ->type_name("number")
      ->check(CLI::Range(0, 1'000'000'000).description(""))
      ->capture_default_str();
  add_seed(*sub, command.run, "of random choices");
  add_load_options(*sub, command.run);
  sub->callback([&command] { generate(command); });
}

}  // namespace ingot::cli
