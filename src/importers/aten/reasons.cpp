// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/reasons.h"

#include <algorithm>
#include <iterator>

namespace ingot::core::aten {
namespace {

constexpr std::string_view kRandomOperators[] = {
    "bernoulli",    "binomial", "cauchy",     "exponential", "geometric", "log_normal",
    "multinomial",  "normal",   "poisson",    "rand",        "rand_like", "randint",
    "randint_like", "randn",    "randn_like", "randperm",    "random",    "uniform"};

}  // namespace

std::string reason_without_converter(std::string_view target) {
  constexpr std::string_view kAten = "aten.";
  if (target.starts_with(kAten)) {
    const std::string_view name = target.substr(kAten.size(), target.rfind('.') - kAten.size());
    if (std::ranges::find(kRandomOperators, name) != std::end(kRandomOperators))
      return "random numbers come from torch's generator, so that its seed decides them";
  }
  return "Ingot has no such operator";
}

}  // namespace ingot::core::aten
