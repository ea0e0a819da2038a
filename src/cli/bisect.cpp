// SPDX-License-Identifier: Apache-2.0
// `ingot bisect`: the rewrite of a pass that makes a result wrong.
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/array_file.h"
#include "cli/commands.h"
#include "cli/difference.h"
#include "cli/option_rows.h"
#include "cli/progress.h"
#include "cli/side.h"
#include "ingot/build.h"

namespace ingot::cli {
namespace {

// Runs the engines of a search on the same inputs, and compares their outputs with the reference.
class Judgement {
 public:
  explicit Judgement(const BisectCommand& command) : command_(command) {
    if (is_array_file(command.reference)) reference_ = read_arrays(command.reference);
  }

  bool is_wrong(EngineHandle engine) {
    progress_.show(fmt::format("build {}", ++builds_), 0, 0, -1);
    if (builds_ > 1) return !is_near(Session(std::move(engine), inputs_).run());
    Session first(std::move(engine), command_.run);
    inputs_ = first.inputs();  // a run may write to its own
    const std::vector<Array> outputs = first.run();
    if (!reference_) reference_ = command_.reference.empty() ? outputs : run_reference();
    return !is_near(outputs);
  }

  std::exception_ptr failure;

 private:
  std::vector<Array> run_reference() const {
    return Session(open_side(command_.reference, command_.run), inputs_).run();
  }
  bool is_near(const std::vector<Array>& outputs) const {
    const std::vector<const Array*> references = match_outputs(outputs, *reference_);
    return std::ranges::equal(outputs, references, [&](const Array& output, const Array* reference) {
      const Difference difference = difference_of(output, *reference, command_.tolerance);
      if (!difference.problem.empty())
        throw CommandError(
            fmt::format("the reference is not of this model: {}: {}", output.name, difference.problem));
      return difference.is_within();
    });
  }

  const BisectCommand& command_;
  std::vector<Array> inputs_;
  std::optional<std::vector<Array>> reference_;
  size_t builds_ = 0;
  ProgressLine progress_;
};

int32_t judge(void* user, ingot_engine* engine) {
  EngineHandle owned(engine, &ingot_engine_free);
  auto& judgement = *static_cast<Judgement*>(user);
  try {
    return judgement.is_wrong(std::move(owned)) ? 1 : 0;
  } catch (...) {  // exceptions must not cross the C API
    judgement.failure = std::current_exception();
    return -1;
  }
}

nlohmann::json search(const BisectCommand& command) {
  Judgement judgement(command);
  const std::vector<ingot_option> rows = option_rows(command.options);
  const ingot_build_options options{.struct_size = sizeof(options),
                                    .options = rows.data(),
                                    .option_count = rows.size(),
                                    .progress = nullptr,
                                    .user = nullptr,
                                    .metadata = nullptr,
                                    .metadata_count = 0,
                                    .output = nullptr,
                                    .session = nullptr,
                                    .store = nullptr};
  ingot_text* report = nullptr;
  ingot_status* status = ingot_bisect_pt2(command.model.c_str(), &options, &judge, &judgement, &report);
  if (judgement.failure) {
    ingot_status_free(status);
    std::rethrow_exception(judgement.failure);
  }
  check(status);
  return nlohmann::json::parse(take_text(report));
}

void print_rewrite(const nlohmann::json& found) {
  const auto text = [&](const char* name) { return found[name].get<std::string>(); };
  fmt::print("the pass {}{}{} at \"{}\" ({}) {}\n", text("pass"), text("rule").empty() ? "" : ", rule ",
             text("rule"), text("node"), text("op"), text("source"));
  fmt::print("  found in {} builds; --bisect-passes {} is the first that is wrong\n",
             found["builds"].get<size_t>(), text("bisect_passes"));
  fmt::print("  --disable-passes {} leaves that node as it is: the result is {}\n", text("disable_passes"),
             found["is_right_without"].get<bool>() ? "right then" : "still wrong then; search again with it");
}

}  // namespace

bool bisect(const BisectCommand& command) {
  const nlohmann::json found = search(command);
  const bool is_right = found["outcome"] == "right";
  if (command.run.json) {
    fmt::print("{}\n", found.dump(2));
  } else if (is_right) {
    fmt::print("the result of all passes is within the tolerance ({} builds)\n",
               found["builds"].get<size_t>());
  } else if (found["outcome"] == "rewrite") {
    print_rewrite(found);
  } else {
    fmt::print("wrong before any optional pass: kernels or passes of level 0 are the cause\n");
  }
  return is_right;
}

}  // namespace ingot::cli
