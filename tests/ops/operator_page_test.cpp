// SPDX-License-Identifier: Apache-2.0
// docs/operators.md is what the records and the converters say. With INGOT_UPDATE_TESTS=1 it is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "backends/cuda/compile/routine_kernels.h"
#include "importers/aten/converters/converters.h"
#include "ops/ops.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

constexpr const char* kPage = INGOT_SOURCE_DIR "/docs/operators.md";
constexpr const char* kHead =
    R"(<!-- tests/ops/operator_page_test.cpp writes this page: INGOT_UPDATE_TESTS=1 build/release/bin/ingot_test_ops -->
# Operators

## Of graphs

What graphs consist of, after the import. Each record in `src/ops` is the only definition of its operator ([how to add one](adding-an-operator.md)).

- **Dtypes** of each operand; a name in brackets may be missing. Where the record allows a dtype, every backend computes it.
- **Sizes**: *symbolic* if the tests run it with sizes that are known only when the engine runs.
- **Computed by**: *code* that is generated for the operator and its neighbours; *parts*, simpler operators that it is decomposed into; a
  *routine* of the runtime, in C++ on the host; or *graphs* and *sources*, which the runtime handles. On a GPU a routine has a kernel of its own where
  the column says so; otherwise its operands are copied to the host, and `ingot.compile` leaves the node to torch.
- **Cases**: the samples of the record. Tests run each in the interpreter and in machine code for CPUs, in every dtype that it allows, and its
  generated code for GPUs where one is at hand.

| operator | what it is | dtypes | sizes | computed by | on a GPU | cases |
|---|---|---|---|---|---|---|
)";
constexpr const char* kOverloadsHead = R"(
## Of torch

The ATen overloads that are imported as they are. torch's own tables decompose others into these; an in-place variant is imported as the
overload and a write. Overloads that are in neither run in torch, between engines, and the report says so.

| operator | overloads |
|---|---|
)";

std::string dtypes_of(const Op& op) {
  std::vector<std::string> parts;
  for (const Operand& operand : op.operands) {
    const std::string operand_name = operand.optional
                                         ? fmt::format("[{}]", operand.name)
                                         : std::string(operand.name) + (operand.variadic ? " ..." : "");
    parts.push_back(fmt::format("{}: {}", operand_name, name(operand.dtypes)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool is_symbolic(const Sample& sample) {
  return std::ranges::any_of(sample.operands, [](const SampleOperand& operand) {
    return std::ranges::any_of(operand.type.shape, [](const Dim& dim) { return !dim.is_constant(); });
  });
}

struct Computed {
  std::string way, on_gpu;
};
Computed computed(const Op& op, const std::vector<Sample>& samples) {
  if (op.lower != nullptr) return {"code", "code"};
  if (op.decompose != nullptr) return {"parts", "parts"};
  if (op.traits.has(Trait::kSource)) return {"source", ""};
  if (op.routine.empty()) return {"graphs", ""};
  const bool has_kernel =
      !samples.empty() && cuda::has_routine_kernel(*make_sample_node(op, samples[0]).node);
  return {"routine", has_kernel ? "code" : "host"};
}

std::string operator_rows() {
  std::string rows;
  for (const Op* op : ops::all_ops()) {
    const std::vector<Sample> samples = op->samples ? op->samples() : std::vector<Sample>{};
    const bool symbolic = std::ranges::any_of(samples, is_symbolic);
    const Computed how = computed(*op, samples);
    std::string summary(op->summary);
    for (size_t at = 0; (at = summary.find('|', at)) != std::string::npos; at += 2) summary.insert(at, "\\");
    rows += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", op->name, summary, dtypes_of(*op),
                        symbolic ? "symbolic" : "", how.way, how.on_gpu, samples.size());
  }
  return rows;
}

std::string overload_rows() {
  std::map<std::string, std::vector<std::string>, std::less<>> overloads;
  for (const aten::Converter* converter : aten::all_converters()) {
    const size_t end = converter->target.rfind('.');
    overloads[std::string(converter->target.substr(0, end))].emplace_back(converter->target.substr(end + 1));
  }
  std::string rows;
  for (auto& [target, names] : overloads) {
    std::ranges::sort(names);
    rows += fmt::format("| `{}` | {} |\n", target, fmt::join(names, ", "));
  }
  return rows;
}

TEST(OperatorPage, IsWhatTheRecordsSay) {
  const std::string page = kHead + operator_rows() + kOverloadsHead + overload_rows();
  if (std::getenv("INGOT_UPDATE_TESTS") != nullptr) std::ofstream(kPage, std::ios::binary) << page;
  std::ifstream file(kPage, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_TRUE(content.str() == page)
      << "docs/operators.md is out of date; run this test with INGOT_UPDATE_TESTS=1";
}

}  // namespace
}  // namespace ingot::core::test
