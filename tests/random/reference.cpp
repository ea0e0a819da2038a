// SPDX-License-Identifier: Apache-2.0
#include "tests/random/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/steps/loop_steps.h"
#include "ir/bound_symbol.h"
#include "ops/attention.h"
#include "ops/bounds.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "ops/scaled_linear.h"
#include "tests/random/noise.h"
#include "tests/random/scaled_sums.h"

namespace ingot::core::random_graphs {
namespace {

// Numbers of trajectories. In the first four, sums that may overflow are all the same; in the last three they
// differ from each other, as what sorts and compares them shows. These run only where there are such sums.
constexpr double kAnything[] = {NAN, INFINITY, -INFINITY, 0};
constexpr int kFlushed = 2, kZeros = 3, kUniform = 4, kWide = 4, kRising = 5, kFalling = 6, kMixed = 7,
              kTrajectories = 8;

constexpr double kLeastNormal = std::numeric_limits<float>::min();

// One trajectory.
struct Trial {
  int number;
  uint64_t round = 0;
  Random random{static_cast<uint64_t>(number) + 1 + round * kTrajectories};
  bool met_overflow = false;  // a sum that may overflow or not

  // The value of such a sum, `position` (0 to 1) in its tensor: up to `limit`, where values are to be
  // distinct.
  double anything(double position, double limit) {
    if (number < kUniform) return kAnything[number];
    if (number == kMixed) return pick(random, kAnything);
    return (number == kRising ? 1 : -1) * (2 * position - 1) * limit;
  }
};

using Values = std::map<const Value*, Tensor>;

// Nodes bind those of inputs: found_position.
SymbolValues bind_symbols(const Graph& graph, const std::vector<Tensor>& inputs) {
  SymbolValues symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.inputs()[i]->type.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is_symbol()) symbols.emplace(shape[d].symbol_name(), inputs[i].shape[d]);
    }
  }
  for (const auto& node : graph.nodes()) {
    const std::string symbol = bound_symbol(*node);
    if (!symbol.empty()) symbols.emplace(symbol, read_integer(inputs[node->operands[0]->index].view(), {}));
  }
  return symbols;
}

// One node of a noisy trajectory: operands of what sums, and results of all that rounds, are a little off.
class NoisyNode {
 public:
  explicit NoisyNode(const Node& node)
      : node_(node), rounds_(rounds(node)), keeps_rounding_(must_keep_rounding(node)) {
    halves_ = promote(node, is_half, DType::kF32);
    if (!rounds_) return;
    elementwise_ = node.op->traits.has(Trait::kElementwise);
    has_tail_ = node.op == &ops::gelu;
    has_absolute_error_ = node.op == &ops::log_softmax || node.op == &ops::log_sum_exp ||
                          node.op == &ops::log_gamma || node.op == &ops::digamma;
    is_power_ = node.op == &ops::power;
    hides_ = node.op == &ops::attention && (node.has_operand(3) || node.attributes<ops::Attention>().causal);
    multiplies_ = node.op == &ops::product || node.op == &ops::cumulative_product;
    averages_ =
        node.op == &ops::mean || node.op == &ops::average_pool || node.op == &ops::adaptive_average_pool;
    for (size_t i = 0; i < node.operands.size() && node.op->traits.has(Trait::kContraction); ++i)
      multiplies_bf16_ |= node.has_operand(i) && node.operand_type(i).dtype == DType::kBF16;
    rounds_weights_ = multiplies_bf16_ && node.op == &ops::attention;
    doubles_ = promote(node, is_below_f64, DType::kF64);
  }

  std::vector<Tensor> run(std::span<const Tensor* const> operands, const SymbolValues& symbols,
                          Trial& trial) const {
    Random& random = trial.random;
    const int number = trial.number;
    if (!rounds_) {
      const bool is_wide_number = operands.empty() && keeps_wide(number);  // until it is stored
      const bool stays_wide = halves_.node != nullptr && (has_wide(operands) || is_wide_number);
      std::vector<Tensor> results = evaluate_promoted(stays_wide ? *halves_.node : node_, operands, symbols);
      const bool narrows = node_.op == &ops::convert && is_half(results[0].dtype) && !keeps_rounding_;
      if (narrows && keeps_wide(number)) {
        results[0] = converted(*operands[0], DType::kF32);
      } else if (narrows) {
        soften(results[0], std::vector<bool>(static_cast<size_t>(results[0].elements()), true), random,
               number);
      }
      return results;
    }
    const Node& wide = halves_.node == nullptr ? node_ : *halves_.node;
    std::vector<Tensor> moved;
    std::vector<const Tensor*> used(operands.begin(), operands.end());
    moved.reserve(operands.size());
    for (size_t i = 0; i < operands.size() && !elementwise_; ++i) {
      if (operands[i] == nullptr || !is_floating(operands[i]->dtype)) continue;
      Tensor& copy = moved.emplace_back(converted(*operands[i], wide.operand_type(i).dtype));
      // Attention rounds the weights of values to bf16, as torch does.
      const bool is_weighted = rounds_weights_ && i == 2 && !keeps_wide(number);
      add_noise(copy, random, is_weighted ? 0x1p-9 : noise_of(copy.dtype), nullptr);
      const bool is_flushed = multiplies_bf16_ && node_.operand_type(i).dtype == DType::kBF16;
      if (is_flushed && number == kFlushed) flush_to_zero(copy, kLeastNormal);
      used[i] = &copy;
    }
    if (is_power_ && number == 2 && is_floating(operands[1]->dtype))
      used[1] = &moved.emplace_back(whole_exponents(*operands[1]));
    // This one also tells what overflows on the way only: it computes in f64.
    const bool is_wide = number == kWide && !elementwise_ && doubles_.node != nullptr;
    std::vector<Tensor> results = evaluate_promoted(is_wide ? *doubles_.node : wide, used, symbols);
    const std::vector<Tensor> exact = exact_results(used, symbols);
    if (!elementwise_) add_overflows(results, operands, symbols, trial);
    if (multiplies_bf16_ && number == kFlushed) flush_sums(results[0], symbols);
    if (node_.op == &ops::scaled_linear) sum_blocks(results[0], used, symbols, trial);
    if (hides_ && number < kUniform && !std::ranges::all_of(operands, all_finite))
      fill(results[0], kAnything[number]);
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_wide && is_floating(results[i].dtype))
        results[i] = converted(results[i], wide.results[i]->type.dtype);
      const Tensor* known = i < exact.size() && exact[i].dtype == DType::kF64 ? &exact[i] : nullptr;
      const std::vector<bool> changed = add_noise(results[i], random, 2 * noise_of(results[i].dtype), known);
      if (has_tail_) add_tail_noise(results[i], *used[0], random);
      if (has_absolute_error_) add_absolute_noise(results[i], random);
      if (results[i].dtype == node_.results[i]->type.dtype || keeps_wide(number)) continue;
      const Tensor before = results[i];
      results[i] = converted(before, node_.results[i]->type.dtype);
      soften(results[i], inexact(before, results[i], changed), random, number);
    }
    return results;
  }

 private:
  // Some trajectories round no halves between nodes, as fused kernels do: what a remainder or a floor makes
  // of that is not a multiple of a half's last place.
  static bool keeps_wide(int number) { return number % 2 == 1; }

  bool has_wide(std::span<const Tensor* const> operands) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != nullptr && operands[i]->dtype != node_.operand_type(i).dtype) return true;
    }
    return false;
  }

  // Sums whose terms come near the largest number overflow on their way or not, depending on their order:
  // such an element may be anything. Sums that cancel may be 0, which noise never makes of them.
  void add_overflows(std::vector<Tensor>& results, std::span<const Tensor* const> operands,
                     const SymbolValues& symbols, Trial& trial) const {
    if (doubles_.node == nullptr) return;
    std::vector<Tensor> sizes;
    std::vector<const Tensor*> used(operands.begin(), operands.end());
    sizes.reserve(operands.size());
    for (const Tensor*& operand : used) {
      if (operand != nullptr && is_floating(operand->dtype))
        operand = &sizes.emplace_back(magnitudes(*operand));
    }
    const std::vector<Tensor> bounds = evaluate_promoted(*doubles_.node, used, symbols);
    // The sum that an average divides is larger by its number of terms.
    const double terms =
        averages_ ? loop_steps(node_, symbols) / static_cast<double>(results[0].elements()) : 1;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!is_floating(results[i].dtype) || bounds[i].dtype != DType::kF64) continue;
      const double limit = results[i].dtype == DType::kF64 ? std::numeric_limits<double>::max()
                                                           : std::numeric_limits<float>::max();
      const TensorView view = results[i].view(), bound = bounds[i].view();
      double position = 0;
      const auto count = static_cast<double>(results[i].elements());
      for_each_element(results[i], [&](const auto& index) {
        const bool is_safe = std::abs(read_double(bound, index)) * terms < limit / 8;
        trial.met_overflow |= !is_safe;
        if (!is_safe && trial.number != kWide)
          write_double(view, index, trial.anything(position / count, limit / 8));
        const double lost = std::abs(read_double(bound, index)) * noise_of(results[i].dtype);
        if (is_safe && trial.number == kZeros && std::abs(read_double(view, index)) <= lost)
          write_double(view, index, 0);
        ++position;
      });
    }
  }

  // Processors multiply bf16 without subnormal numbers, and torch on them: of each term as much may be lost.
  void flush_sums(Tensor& sums, const SymbolValues& symbols) const {
    const auto elements = static_cast<double>(std::max<int64_t>(sums.elements(), 1));
    flush_to_zero(sums, kLeastNormal * (1 + loop_steps(node_, symbols) / elements));
  }

  void sum_blocks(Tensor& result, std::span<const Tensor* const> operands, const SymbolValues& symbols,
                  Trial& trial) const {
    const ScaledSums scaled = scaled_sums(node_, operands, symbols);
    trial.met_overflow |= scaled.may_overflow;
    if (!scaled.may_overflow && keeps_wide(trial.number)) result = scaled.sums;
    if (!scaled.may_overflow || trial.number == kWide) return;
    const TensorView view = result.view();
    double position = 0;
    for_each_element(result, [&](const auto& index) {
      const double at = position++ / static_cast<double>(result.elements());
      write_double(view, index, trial.anything(at, std::numeric_limits<float>::max() / 8));
    });
  }

  // Infinite keys and values that a mask hides spread or not, by what a kernel skips: so they do in torch.
  static bool all_finite(const Tensor* operand) {
    bool finite = true;
    if (operand == nullptr || !is_floating(operand->dtype)) return finite;
    for_each_element(*operand, [&](const auto& index) {
      finite = finite && std::isfinite(read_double(operand->view(), index));
    });
    return finite;
  }
  static void fill(const Tensor& tensor, double value) {
    const TensorView view = tensor.view();
    for_each_element(tensor, [&](const auto& index) { write_double(view, index, value); });
  }

  // Of products the part that grows: their order decides what else becomes of them.
  Tensor magnitudes(const Tensor& tensor) const {
    Tensor result = make_tensor(tensor.dtype, tensor.shape);
    const TensorView from = tensor.view(), to = result.view();
    for_each_element(tensor, [&](const auto& index) {
      double value = std::abs(read_double(from, index));
      if (!std::isfinite(value)) value = 1;
      if (multiplies_ && value > 0 && value < 1) value = 1 / value;
      write_double(to, index, multiplies_ ? std::max(value, 1.0) : value);
    });
    return result;
  }

  std::vector<Tensor> exact_results(std::span<const Tensor* const> operands,
                                    const SymbolValues& symbols) const {
    const bool is_known =
        elementwise_ && doubles_.node != nullptr && node_.results[0]->type.dtype != DType::kF64;
    return is_known ? evaluate_promoted(*doubles_.node, operands, symbols) : std::vector<Tensor>{};
  }

  const Node& node_;
  bool rounds_, keeps_rounding_, elementwise_ = false, has_tail_ = false, has_absolute_error_ = false,
                                 multiplies_ = false, averages_ = false, is_power_ = false, hides_ = false,
                                 multiplies_bf16_ = false, rounds_weights_ = false;
  Promoted halves_, doubles_;
};

Tensor stored(const Tensor& tensor, const Value& value) {
  return tensor.dtype == value.type.dtype ? tensor : converted(tensor, value.type.dtype);
}

class Simulation {
 public:
  explicit Simulation(const Case& test) : test_(test), sources_(test.sources) {
    for (const auto& node : test.graph.nodes()) {
      if (!node->op->traits.has(Trait::kSource)) nodes_.emplace(node.get(), NoisyNode(*node));
    }
  }

  // Without noise where there is no `trial`.
  Trajectory run(Trial* trial, std::vector<Values>* all = nullptr) {
    sources_ = test_.sources;
    Trajectory trajectory;
    for (const auto& inputs : test_.runs) {
      const Values values = run_once(inputs, trial);
      if (all != nullptr) all->push_back(values);
      Evaluation& evaluation = trajectory.emplace_back();
      for (const Value* output : test_.graph.outputs)
        evaluation.outputs.push_back(stored(values.at(output), *output));
      for (const Update& update : test_.graph.updates) {
        const std::string name = update.target->producer->attributes<ops::ModelSource>().name;
        evaluation.updates.insert_or_assign(name, stored(values.at(update.value), *update.value));
      }
      for (const auto& [name, value] : evaluation.updates) sources_.insert_or_assign(name, value);
    }
    return trajectory;
  }

 private:
  Values run_once(const std::vector<Tensor>& inputs, Trial* trial) {
    const SymbolValues symbols = bind_symbols(test_.graph, inputs);
    Values values;
    for (size_t i = 0; i < inputs.size(); ++i) values.emplace(test_.graph.inputs()[i], inputs[i]);
    for (const auto& node : test_.graph.nodes()) {
      if (node->op->traits.has(Trait::kSource)) {
        const bool is_literal = node->literal != nullptr;
        values.emplace(node->results[0],
                       is_literal ? *node->literal : sources_.at(node->attributes<ops::ModelSource>().name));
        continue;
      }
      std::vector<const Tensor*> operands;
      for (const Value* operand : node->operands) operands.push_back(operand ? &values.at(operand) : nullptr);
      auto results = trial == nullptr ? evaluate_node(*node, operands, symbols)
                                      : nodes_.at(node.get()).run(operands, symbols, *trial);
      for (size_t i = 0; i < results.size(); ++i) values.emplace(node->results[i], std::move(results[i]));
    }
    return values;
  }

  const Case& test_;
  TensorMap sources_;
  std::map<const Node*, NoisyNode> nodes_;
};

}  // namespace

Reference make_reference(const Case& test, int rounds) {
  Simulation simulation(test);
  Reference reference{simulation.run(nullptr), {}};
  bool may_overflow = false;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < (may_overflow ? kTrajectories : kRising); ++i) {
      Trial trial{i, static_cast<uint64_t>(round)};
      reference.noisy.push_back(simulation.run(&trial));
      may_overflow |= trial.met_overflow;
    }
  }
  return reference;
}

bool breaks_bounds(const Case& test) {
  std::vector<SizeCheck> checks;
  Graph graph = test.graph.clone();
  graph.erase_dead_nodes();
  complete_checks(graph, checks);
  return std::ranges::any_of(test.runs, [&](const auto& inputs) {
    const SymbolValues symbols = bind_symbols(test.graph, inputs);
    return !std::ranges::all_of(checks,
                                [&](const SizeCheck& check) { return evaluate(check.condition, symbols); });
  });
}

std::vector<std::map<const Value*, Tensor>> all_values(const Case& test) {
  std::vector<Values> all;
  Simulation(test).run(nullptr, &all);
  return all;
}

}  // namespace ingot::core::random_graphs
