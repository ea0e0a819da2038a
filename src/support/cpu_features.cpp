// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_features.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "support/error.h"
#include "support/text.h"

namespace ingot::core {
namespace {

struct Word {
  std::string_view name;
  CpuFeatures features;
};

constexpr CpuFeatures of(std::initializer_list<CpuFeature> list) {
  CpuFeatures result;
  for (const CpuFeature feature : list) result.add(feature);
  return result;
}

// A text is one base, the largest that is covered, and the extensions. "native" is understood, never printed.
constexpr std::array kBases = {
    Word{"aarch64", of({CpuFeature::kAarch64})},
    Word{"x86-64-v4", of({CpuFeature::kX86V3, CpuFeature::kX86V4})},
    Word{"x86-64-v3", of({CpuFeature::kX86V3})},
    Word{"x86-64", {}},
};
constexpr std::array kExtensions = {
    Word{"vnni", of({CpuFeature::kAvx512Vnni})},  Word{"bf16", of({CpuFeature::kAvx512Bf16})},
    Word{"fp16", of({CpuFeature::kAvx512Fp16})},  Word{"amx-tile", of({CpuFeature::kAmxTile})},
    Word{"amx-bf16", of({CpuFeature::kAmxBf16})}, Word{"amx-int8", of({CpuFeature::kAmxInt8})},
};

CpuFeatures parse_word(std::string_view word, std::span<const Word> words, std::string_view text) {
  const auto found = std::ranges::find(words, word, &Word::name);
  if (found != words.end()) return found->features;
  std::vector<std::string_view> names;
  std::ranges::transform(words, std::back_inserter(names), &Word::name);
  const std::string_view nearest = nearest_name(word, names);
  throw UserError("INGOT-U121",
                  fmt::format("there is no CPU feature '{}'{}", word,
                              word == text ? "" : fmt::format(" (in '{}')", text)),
                  nearest.empty() ? fmt::format("use one of: {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace

std::string to_string(CpuFeatures features) {
  const auto covered = [&](const Word& word) { return features.covers(word.features); };
  std::string text(std::ranges::find_if(kBases, covered)->name);
  for (const Word& extension : kExtensions) {
    if (covered(extension)) text += fmt::format("+{}", extension.name);
  }
  return text;
}

CpuFeatures parse_cpu_features(std::string_view text) {
  if (text == "native") return host_cpu_features();
  CpuFeatures result;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::span<const Word> words = begin == 0 ? std::span<const Word>(kBases) : kExtensions;
    result.bits |= parse_word(text.substr(begin, end - begin), words, text).bits;
    begin = end + 1;
  }
  return result;
}

}  // namespace ingot::core
