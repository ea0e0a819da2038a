// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_features.h"

#include <algorithm>
#include <array>
#include <initializer_list>
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

struct Extension {
  std::string_view name;
  CpuFeatures features;
  std::string_view needs;  // the feature that the extension requires
};

// The text form is the largest base that is covered, followed by extensions. "native" is parsed, never
// printed.
constexpr std::array kBases = {
    Word{"aarch64", of({CpuFeature::kAarch64})},
    Word{"x86-64-v4", of({CpuFeature::kX86V3, CpuFeature::kX86V4})},
    Word{"x86-64-v3", of({CpuFeature::kX86V3})},
    Word{"x86-64", {}},
};
constexpr std::array kExtensions = {
    Extension{"vnni", of({CpuFeature::kAvx512Vnni}), "x86-64-v4"},
    Extension{"bf16", of({CpuFeature::kAvx512Bf16}), "x86-64-v4"},
    Extension{"fp16", of({CpuFeature::kAvx512Fp16}), "x86-64-v4"},
    Extension{"vbmi", of({CpuFeature::kAvx512Vbmi}), "x86-64-v4"},
    Extension{"amx-tile", of({CpuFeature::kAmxTile}), "x86-64-v3"},
    Extension{"amx-bf16", of({CpuFeature::kAmxBf16}), "amx-tile"},
    Extension{"amx-int8", of({CpuFeature::kAmxInt8}), "amx-tile"},
};

template <typename Words>
CpuFeatures parse_word(std::string_view word, const Words& words, std::string_view text) {
  using Entry = typename Words::value_type;
  const auto found = std::ranges::find(words, word, &Entry::name);
  if (found != words.end()) return found->features;
  std::vector<std::string_view> names;
  std::ranges::transform(words, std::back_inserter(names), &Entry::name);
  const std::string_view nearest = nearest_name(word, names);
  throw UserError("INGOT-U121",
                  fmt::format("there is no CPU feature '{}'{}", word,
                              word == text ? "" : fmt::format(" (in '{}')", text)),
                  nearest.empty() ? fmt::format("use one of: {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'?", nearest));
}

CpuFeatures features_of(std::string_view name) {
  const auto base = std::ranges::find(kBases, name, &Word::name);
  if (base != kBases.end()) return base->features;
  return std::ranges::find(kExtensions, name, &Extension::name)->features;
}

void require_bases(CpuFeatures features, std::string_view text) {
  for (const Extension& extension : kExtensions) {
    if (!features.covers(extension.features) || features.covers(features_of(extension.needs))) continue;
    throw UserError("INGOT-U122",
                    fmt::format("no processor has '{}': the CPU feature '{}' comes with '{}' only", text,
                                extension.name, extension.needs),
                    fmt::format("leave '{}' out, or write '{}'", extension.name, extension.needs));
  }
}

}  // namespace

std::string to_string(CpuFeatures features) {
  const auto covered = [&](const auto& word) { return features.covers(word.features); };
  std::string text(std::ranges::find_if(kBases, covered)->name);
  for (const Extension& extension : kExtensions) {
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
    const std::string_view word = text.substr(begin, end - begin);
    result.bits |=
        begin == 0 ? parse_word(word, kBases, text).bits : parse_word(word, kExtensions, text).bits;
    begin = end + 1;
  }
  require_bases(result, text);
  return result;
}

}  // namespace ingot::core
