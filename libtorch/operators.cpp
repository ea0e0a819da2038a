// SPDX-License-Identifier: Apache-2.0
// The operators of TorchScript files of `ingot.save`, for C++ programs that load them with LibTorch. In
// Python `import ingot` defines them: a process has one definition or the other.
#include <torch/library.h>

#include "opened_engines.h"

namespace ingot::torch_operators {
namespace {

std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const at::Tensor& engine, c10::string_view) {
  static OpenedEngines engines;  // torch's operators have no state of their own
  return engines.of(engine)->run(inputs);
}

std::vector<at::Tensor> run_program(std::vector<at::Tensor>, const at::Tensor&) {
  TORCH_CHECK(false,
              "torch runs parts of this module, and needs Python for that (import ingot; torch.jit.load); "
              "compile it with "
              "require_full_compilation=True for programs without Python");
}

TORCH_LIBRARY(ingot, library) {
  library.def("run(Tensor[] inputs, Tensor engine, str meta) -> Tensor[]");
  library.def("run_program(Tensor[] inputs, Tensor program) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(ingot, CPU, library) {
  library.impl("run", run);
  library.impl("run_program", run_program);
}

}  // namespace
}  // namespace ingot::torch_operators
