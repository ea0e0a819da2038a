// SPDX-License-Identifier: Apache-2.0
// Converters of the rows of composites.def.
#include <algorithm>
#include <unordered_map>

#include "importers/aten/composites/composite.h"
#include "importers/aten/converters/complex.h"
#include "importers/aten/converters/composites/evaluation.h"
#include "importers/aten/converters/converters.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

using ByTarget = std::unordered_map<std::string_view, const Composite*>;

// Of calls with complex operands or results, or of the others.
ByTarget composites_by_target(bool of_complex) {
  ByTarget found;
  for (const Composite& composite : all_composites()) {
    using enum Composite::Kind;
    const bool is_complex = composite.kind == kComplex || composite.kind == kKeptComplex;
    const bool is_wanted = composite.kind == kBoth || is_complex == of_complex;
    if (composite.kind != kLocal && is_wanted) found.emplace(composite.target, &composite);
  }
  return found;
}
template <bool kOfComplex>
const ByTarget& composites_of() {
  static const ByTarget kAll = composites_by_target(kOfComplex);
  return kAll;
}
template <bool kOfComplex>
void evaluate_composite(Call& call) {
  const auto found = composites_of<kOfComplex>().find(call.node().target);
  invariant(found != composites_of<kOfComplex>().end(), "a composite without a row");
  Evaluation(call).run(*found->second);
}
template <bool kOfComplex>
std::vector<Converter> composite_converters() {
  std::vector<Converter> converters;
  for (const auto& [target, composite] : composites_of<kOfComplex>()) {
    using enum Composite::Kind;
    const bool is_composed = composite->kind == kDecomposable || composite->kind == kKeptComplex;
    converters.push_back({target, evaluate_composite<kOfComplex>, is_composed});
  }
  std::ranges::sort(converters, {}, &Converter::target);
  return converters;
}

}  // namespace

std::span<const Converter> composites_converters() {
  static const std::vector<Converter> kConverters = composite_converters<false>();
  return kConverters;
}

std::span<const Converter> complex_composites() {
  static const std::vector<Converter> kConverters = composite_converters<true>();
  return kConverters;
}

}  // namespace ingot::core::aten
