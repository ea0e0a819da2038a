// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/reasons.h"

#include <algorithm>
#include <iterator>

namespace ingot::core::aten {
namespace {

constexpr std::string_view kRandomOperators[] = {
    "bernoulli", "binomial",          "cauchy",   "exponential", "geometric", "log_normal", "multinomial",
    "normal",    "normal_functional", "poisson",  "rand",        "rand_like", "randint",    "randint_like",
    "randn",     "randn_like",        "randperm", "random",      "uniform"};

}  // namespace

bool draws_random_numbers(std::string_view target) {
  constexpr std::string_view kAten = "aten.";
  if (!target.starts_with(kAten)) return false;
  const std::string_view name = target.substr(kAten.size(), target.rfind('.') - kAten.size());
  return std::ranges::find(kRandomOperators, name) != std::end(kRandomOperators);
}

std::string reason_without_converter(std::string_view target) {
  return draws_random_numbers(target)
             ? "random numbers come from torch's generator, so that its seed decides them"
             : "Ingot has no such operator";
}

}  // namespace ingot::core::aten
