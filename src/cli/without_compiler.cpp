// SPDX-License-Identifier: Apache-2.0
// The commands that need the compiler, in a program that was built without it.
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/open_tensors.h"
#include "cli/report_page.h"
#include "cli/shared_options.h"

namespace ingot::cli {
namespace {

[[noreturn]] void fail_without_compiler() {
  CommandError error(
      "[INGOT-U038] this program has no compiler: build engines where there is one, for this system by "
      "`ingot build MODEL --target windows-x86-64`");
  error.details = {{"code", "INGOT-U038"}, {"message", "this program has no compiler"}};
  throw error;
}

}  // namespace

void build(const BuildCommand&) { fail_without_compiler(); }
void export_onnx(const ExportCommand&) { fail_without_compiler(); }
bool bisect(const BisectCommand&) { fail_without_compiler(); }
void optimize(const OptCommand&) { fail_without_compiler(); }
EngineHandle build_plain(const std::string&) { fail_without_compiler(); }
void write_report_page(const std::string&, const nlohmann::json&) { fail_without_compiler(); }
std::string describe_model(const std::string&) { fail_without_compiler(); }

ingot_tensors* open_tensors(const std::string& path) {
  if (path.ends_with(".pt2")) fail_without_compiler();
  ingot_tensors* tensors = nullptr;
  check(ingot_open_tensors(path.c_str(), &tensors));
  return tensors;
}

// Whatever is given: the command itself says what it lacks.
void add_build_options(CLI::App& app, std::map<std::string, std::string>&) { app.allow_extras(); }

}  // namespace ingot::cli
