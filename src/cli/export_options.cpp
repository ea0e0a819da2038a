// SPDX-License-Identifier: Apache-2.0
#include "cli/export_options.h"

#include "cli/shared_options.h"

namespace ingot::cli {

void add_export(CLI::App& app, ExportCommand& command) {
  CLI::App* sub = app.add_subcommand("export", "Write an engine or a model for viewers such as Netron");
  sub->add_option("file", command.file, "engine file, model.pt2 or model.onnx")
      ->type_name("FILE")
      ->required();
  sub->add_option("--onnx", command.onnx, "ONNX model to write, which no runtime of ONNX runs: view.onnx")
      ->type_name("FILE")
      ->required();
  sub->add_option("--stage", command.stage,
                  "imported: the graph before all passes, of an engine without names; optimized: the graph "
                  "of a model after the passes of a build with the options below (default of models); steps: "
                  "what an engine runs (default of engines)")
      ->type_name("imported|optimized|steps");
  sub->add_flag("--json", command.json, "print JSON");
  add_build_options(*sub, command.options);
  sub->callback([&command] { export_onnx(command); });
}

}  // namespace ingot::cli
