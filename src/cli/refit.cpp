// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/tensor_file.h"

namespace ingot::cli {

void refit(const RefitCommand& command) {
  check_output_path(command.output);
  const ingot_load_options options{.struct_size = sizeof(options),
                                   .verify = INGOT_VERIFY_LAZY,
                                   .trust = INGOT_TRUST_ANY,
                                   .memory = INGOT_MEMORY_MAP,
                                   .trusted_keys = nullptr,
                                   .without_weights = command.partial ? 0 : 1};
  ingot_engine* loaded = nullptr;
  check(ingot_engine_load(command.engine.c_str(), &options, &loaded));
  const std::unique_ptr<ingot_engine, decltype(&ingot_engine_free)> engine(loaded, &ingot_engine_free);
  const auto start = std::chrono::steady_clock::now();
  const size_t tensors = refit_from_files(engine.get(), command.weights, command.partial);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  check(ingot_engine_save(engine.get(), command.output.c_str()));
  if (command.json) {
    const nlohmann::json json = {
        {"output", command.output}, {"tensors", tensors}, {"seconds", seconds.count()}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} tensors, prepared in {:.3f} s\n", command.output, tensors, seconds.count());
  }
}

}  // namespace ingot::cli
