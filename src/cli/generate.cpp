// SPDX-License-Identifier: Apache-2.0
#include "cli/generate.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/session.h"

namespace ingot::cli {
namespace {

bool is_integer(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }
bool contains(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

[[noreturn]] void refuse(const std::string& problem) {
  throw CommandError(
      problem +
      "; `ingot generate` needs an engine with one integer input of tokens [1, length], if it has "
      "them inputs of positions and of a mask, and an output of logits [1, length, vocabulary]");
}

template <typename T>
std::vector<float> last_row(const Tensor& logits) {
  const auto values = logits.values<const T>();
  const auto row = values.last(static_cast<size_t>(logits.shape().back()));
  std::vector<float> result(row.size());
  std::ranges::transform(row, result.begin(), [](T value) { return static_cast<float>(value); });
  return result;
}

std::vector<int64_t> parse_ids(const std::string& text) {
  std::vector<int64_t> ids;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 18 || word.find_first_not_of("0123456789") != std::string::npos)
      throw CommandError(fmt::format("--ids '{}': '{}' is not a token; write 464,3290", text, word), 2);
    ids.push_back(std::stoll(word));
    at = end + 1;
  }
  return ids;
}

}  // namespace

LanguageModel::LanguageModel(Engine engine) : engine_(std::move(engine)), context_(engine_) {
  bool has_tokens = false;
  for (const Port& port : engine_.inputs()) {
    const bool is_position = contains(port.name, "position"), is_mask = contains(port.name, "mask");
    const Role role = is_position ? Role::kPositions : is_mask ? Role::kMask : Role::kTokens;
    if (!is_integer(port.dtype) && !(is_mask && port.dtype == DType::kBool))
      refuse(fmt::format("the input '{}' is {}", port.name, dtype_name(static_cast<int32_t>(port.dtype))));
    if (port.dims.empty() || port.dims.size() > 2 || (port.dims.size() == 2 && port.min[0] > 1))
      refuse(fmt::format("the input '{}' is [{}]", port.name, fmt::join(port.dims, ", ")));
    if (role == Role::kTokens) {
      if (has_tokens) refuse(fmt::format("the input '{}' is one more", port.name));
      has_tokens = true;
      fewest_ = port.min.back();
      most_ = port.max.back();
    }
    inputs_.push_back({role, port.dtype, port.dims.size()});
  }
  if (!has_tokens) refuse("the engine has no input of tokens");
  const std::vector<Port> outputs = engine_.outputs();
  const auto found = std::ranges::find_if(
      outputs, [](const Port& port) { return port.name == "logits" && port.dims.size() >= 2; });
  const auto logits = found != outputs.end() ? found : std::ranges::find_if(outputs, [](const Port& port) {
    return !is_integer(port.dtype) && port.dims.size() == 3;
  });
  if (logits == outputs.end()) refuse("the engine has no output of logits");
  logits_ = static_cast<size_t>(logits - outputs.begin());
  has_state_ = !engine_.states().empty();
}

Tensor LanguageModel::make_input(const Input& input, size_t first, size_t count) const {
  std::vector<int64_t> shape(input.rank, 1);
  shape.back() = static_cast<int64_t>(count);
  Tensor tensor = Tensor::empty(input.dtype, shape);
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = input.role == Role::kTokens      ? tokens_[first + i]
                          : input.role == Role::kPositions ? static_cast<int64_t>(first + i)
                                                           : 1;
    if (input.dtype == DType::kI32 && value > INT32_MAX)
      throw CommandError(fmt::format("token {} is too large for an engine whose tokens are i32", value));
    if (input.dtype == DType::kI64) tensor.values<int64_t>()[i] = value;
    if (input.dtype == DType::kI32) tensor.values<int32_t>()[i] = static_cast<int32_t>(value);
    if (input.dtype == DType::kBool) tensor.values<bool>()[i] = value != 0;
  }
  return tensor;
}

std::vector<float> LanguageModel::run(size_t first, size_t count) {
  std::vector<Tensor> inputs;
  for (const Input& input : inputs_) inputs.push_back(make_input(input, first, count));
  const Tensor logits = context_.run(inputs).at(logits_);
  switch (logits.dtype()) {
    case DType::kF32:
      return last_row<float>(logits);
    case DType::kF64:
      return last_row<double>(logits);
    case DType::kF16:
      return last_row<Float16>(logits);
    case DType::kBF16:
      return last_row<BFloat16>(logits);
    default:
      refuse("the logits are not floating-point");
  }
}

std::vector<float> LanguageModel::step(const std::vector<int64_t>& tokens) {
  const size_t before = tokens_.size();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto fits = [&](size_t count) {
    return static_cast<int64_t>(count) >= fewest_ && static_cast<int64_t>(count) <= most_;
  };
  if (!has_state_) {
    if (!fits(tokens_.size()))
      throw CommandError(
          fmt::format("the engine takes {} to {} tokens, not {}", fewest_, most_, tokens_.size()));
    return run(0, tokens_.size());
  }
  if (fits(tokens.size())) return run(before, tokens.size());
  if (!fits(1))
    throw CommandError(fmt::format("the engine takes {} to {} tokens at a time, not 1", fewest_, most_));
  std::vector<float> logits;
  for (size_t at = before; at < tokens_.size(); ++at) logits = run(at, 1);
  return logits;
}

namespace {

// Printed as they are made, in a line that ends before an error is reported.
class TokenLine {
 public:
  TokenLine() = default;
  TokenLine(const TokenLine&) = delete;
  TokenLine& operator=(const TokenLine&) = delete;
  ~TokenLine() {
    if (!is_empty_) std::fputs("\n", stdout);
    std::fflush(stdout);
  }

  void add(int64_t token) {
    fmt::print("{}{}", is_empty_ ? "" : ",", token);
    std::fflush(stdout);
    is_empty_ = false;
  }

 private:
  bool is_empty_ = true;
};

}  // namespace

void generate(const GenerateCommand& command) {
  std::vector<int64_t> ids = parse_ids(command.ids), further = ids;
  LanguageModel model(Engine(open_engine(command.run).release()));
  Sampler sampler({command.temperature, command.top_k, command.run.seed});
  const auto start = std::chrono::steady_clock::now();
  std::vector<int64_t> made;
  TokenLine line;
  while (made.size() < command.tokens) {
    const int64_t next = sampler.choose(model.step(further));
    made.push_back(next);
    if (!command.run.json) line.add(next);
    if (next == command.stop) break;
    further = {next};
  }
  if (!command.run.json) return;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  fmt::print("{}\n", nlohmann::json{{"ids", made}, {"seconds", time.count()}}.dump(2));
}

}  // namespace ingot::cli
