// SPDX-License-Identifier: Apache-2.0
// Token by token generation with an engine of a language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ingot/context.h"

namespace ingot::cli {

// How the next token is chosen. A temperature of 0 is greedy: the first of the largest logits.
struct Sampling {
  double temperature = 0;
  size_t top_k = 0;  // of the largest logits; 0: all
  uint64_t seed = 0;
};

// Chooses tokens by logits. The same seed draws the same random numbers on every machine.
class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : sampling_(sampling), state_(sampling.seed) {}
  int64_t choose(const std::vector<float>& logits);

 private:
  double uniform();  // [0, 1)

  Sampling sampling_;
  uint64_t state_;
};

// The roles of an engine's inputs, and how it is called. An engine that keeps state gets each token once;
// another one gets the whole sequence at every step.
class LanguageModel {
 public:
  explicit LanguageModel(Engine engine);
  // The logits of the last position, after these further tokens.
  std::vector<float> step(const std::vector<int64_t>& tokens);

 private:
  enum class Role : uint8_t { kTokens, kPositions, kMask };
  struct Input {
    Role role;
    DType dtype;
    size_t rank;
  };
  Tensor make_input(const Input& input, size_t first, size_t count) const;
  std::vector<float> run(size_t first, size_t count);

  Engine engine_;
  Context context_;
  std::vector<Input> inputs_;
  size_t logits_ = 0;              // position among the outputs
  int64_t most_ = 0, fewest_ = 0;  // tokens of one call
  bool has_state_ = false;
  std::vector<int64_t> tokens_;  // all so far
};

}  // namespace ingot::cli
