// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_options.h"
#include "ingot/build.h"

namespace ingot::cli {

void add_build_options(CLI::App& app, std::map<std::string, std::string>& options) {
  for (size_t i = 0; i < ingot_option_count(); ++i) {
    ingot_option_info info{};
    info.struct_size = sizeof(info);
    check(ingot_option_describe(i, &info));
    std::string dashed = "--" + std::string(info.name);
    for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
    const std::string name = info.name;
    if (std::string_view(info.type) == "files") {  // one value per file, and one line per file in the option
      const auto add = [&options, name](const std::vector<std::string>& files) {
        options[name] = CLI::detail::join(files, "\n");
      };
      app.add_option_function<std::vector<std::string>>(dashed, add, info.summary)
          ->type_name("FILE")
          ->allow_extra_args(false);
      continue;
    }
    const bool is_bool = std::string_view(info.type) == "bool";  // by itself it is true
    const auto set = [&options, name, is_bool](const std::string& value) {
      options[name] = is_bool && value.empty() ? "true" : value;
    };
    CLI::Option* const option = app.add_option_function<std::string>(dashed, set, info.summary);
    if (is_bool) {  // CLI11 takes its own default for an option without a value
      option->type_name(std::string("bool=") + info.default_value)->expected(0, 1);
    } else {
      option->type_name(info.type)->default_str(info.default_value);
    }
  }
  for (const std::string name : {"fallback", "staged"}) {  // of Python alone: the build says what to use here
    app.add_option_function<std::string>(
           "--" + name, [&options, name](const std::string& value) { options[name] = value; })
        ->expected(0, 1)
        ->group("");
  }
}

}  // namespace ingot::cli
