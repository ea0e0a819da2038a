// SPDX-License-Identifier: Apache-2.0
// Greedy generation with an engine of a language model that keeps its cache as state: one token per run. Its
// inputs are input_ids [1, 1] and cache_position [1], in i64, and its result is logits [1, 1, vocabulary], in
// f32.
//   generate model.ingot COUNT TOKEN...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "ingot/context.h"

namespace {

class Decoder {
 public:
  explicit Decoder(const char* path) : context_(ingot::Engine::load(path)) {}

  // The most likely token after `token`, and what came before it.
  int64_t next(int64_t token) {
    std::vector<int64_t> ids{token}, position{position_++};
    const ingot::NamedTensors outputs = context_.run(
        {{"input_ids", ingot::Tensor(ids, {1, 1})}, {"cache_position", ingot::Tensor(position, {1})}});
    const auto logits = outputs.begin()->second.values<const float>();
    return std::ranges::max_element(logits) - logits.begin();
  }

 private:
  ingot::Context context_;  // owns the cache
  int64_t position_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s model.ingot COUNT TOKEN...\n", argv[0]);
    return 2;
  }
  try {
    Decoder decoder(argv[1]);
    int64_t next = 0;
    for (int i = 3; i < argc; ++i) next = decoder.next(std::atoll(argv[i]));
    for (long count = std::atol(argv[2]); count > 0; --count) {
      std::printf("%lld\n", static_cast<long long>(next));
      if (count > 1) next = decoder.next(next);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
