// SPDX-License-Identifier: Apache-2.0
// Builds an engine from a .pt2 of torch.export and writes it.
//   build model.pt2 model.ingot [KEY=VALUE]...    metadata that the engine keeps
#include <cstdio>
#include <exception>
#include <string>

#include "ingot/compile.h"

namespace {

bool show(const ingot::Progress& progress) {
  std::fprintf(stderr, "%s: %zu of %zu\n", progress.phase.c_str(), progress.done, progress.total);
  return true;  // false would cancel the build
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s model.pt2 model.ingot [KEY=VALUE]...\n", argv[0]);
    return 2;
  }
  try {
    ingot::CompileOptions options;
    options.progress = show;
    for (int i = 3; i < argc; ++i) {
      const std::string entry = argv[i];
      const size_t end = entry.find('=');
      options.metadata[entry.substr(0, end)] = end == std::string::npos ? "" : entry.substr(end + 1);
    }
    const ingot::Engine engine = ingot::compile(argv[1], options);
    engine.save(argv[2]);
  } catch (const ingot::Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), ingot::explain(error.code()).c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
