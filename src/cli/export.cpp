// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/output_file.h"
#include "cli/system.h"
#include "ingot/build.h"

namespace ingot::cli {

void export_onnx(const ExportCommand& command) {
  check_output_path(command.onnx);
  if (to_path(command.onnx).lexically_normal() == to_path(command.file).lexically_normal())
    throw CommandError(fmt::format("--onnx would replace the file to export, '{}'", command.file), 2);
  const std::vector<ingot_option> options = option_rows(command.options);
  ingot_build_options build_options{};
  build_options.struct_size = sizeof(build_options);
  build_options.options = options.data();
  build_options.option_count = options.size();
  ingot_text* text = nullptr;
  check(ingot_export_onnx(command.file.c_str(), command.stage.c_str(), &build_options, &text));
  const std::string onnx = take_text(text);
  OutputFile file(command.onnx);
  file.write(onnx);
  file.finish();
  if (command.json) {
    fmt::print("{}\n", nlohmann::json{{"output", command.onnx}, {"bytes", onnx.size()}}.dump(2));
  } else {
    fmt::print("{}: {} bytes, for viewers of ONNX models such as Netron\n", command.onnx, onnx.size());
  }
}

}  // namespace ingot::cli
