// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ingot::core {
namespace {

constexpr size_t kRingAlignment = 256;    // of DeviceMemory
constexpr size_t kLeastStreamed = 16384;  // bytes: the start of a copy costs more than these take
// A weight that is read again later than this many steps is copied again rather than kept in the ring.
constexpr uint32_t kNearSteps = 16;
// The part of a weight that steps may read where it is: the host's memory is far.
constexpr int64_t kLeastUnread = 4;
constexpr int kShares = 64;  // of the streamed bytes, tried in this many steps

size_t aligned(size_t bytes) { return (bytes + kRingAlignment - 1) / kRingAlignment * kRingAlignment; }

struct WeightUse {
  uint32_t span, step, argument;
};

struct DeviceWeight {
  uint32_t id;
  size_t bytes;
  bool may_stream = true, is_read_whole = false;
  std::vector<WeightUse> uses;  // by step
};

// The weights on device 0, in order of first use.
class WeightUses {
 public:
  WeightUses(const Executable& main, const EngineData& data) : data_(data) {
    for (uint32_t span = 0; span < main.spans.size(); ++span) add_span(main, span);
    for (const Executable& nested : main.nested) keep_all(*nested.program);
    for (DeviceWeight& weight : weights_) weight.may_stream &= weight.bytes >= kLeastStreamed;
  }
  std::vector<DeviceWeight> take() && { return std::move(weights_); }

 private:
  void add_span(const Executable& main, uint32_t index) {
    const ExecutableSpan& span = main.spans[index];
    const bool is_of_device = span.backend != kNoId;
    for (uint32_t i = span.first; i < span.last; ++i) {
      const ExecutableStep& step = main.steps[i];
      for (uint32_t k = step.first_argument; k < step.first_argument + step.argument_count; ++k) {
        if (main.arguments[k] == kNoId) continue;
        DeviceWeight* weight = find(*main.program, main.buffers[main.arguments[k]].root);
        if (weight == nullptr) continue;
        weight->uses.push_back({index, i, k});
        weight->may_stream &= is_of_device;
        weight->is_read_whole |= reads_whole(main, *step.step, *weight);
      }
    }
  }

  // Whether the step moves more than a part of the weight, its other operands and results included.
  static bool reads_whole(const Executable& main, const Step& step, const DeviceWeight& weight) {
    const int64_t most = range_of(step.bytes, main.program->symbols).max;
    return step.as<KernelStep>() == nullptr || most <= 0 ||
           most > static_cast<int64_t>(weight.bytes) / kLeastUnread;
  }

  void keep_all(const Program& program) {
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      if (DeviceWeight* weight = find(program, id)) weight->may_stream = false;
    }
    for (const Program& nested : program.nested) keep_all(nested);
  }

  DeviceWeight* find(const Program& program, BufferId buffer) {
    constexpr Place kFirst{Place::Kind::kDevice, 0};
    const auto id = program.buffers[buffer].weight();
    if (!id || program.buffers[buffer].place != kFirst) return nullptr;
    const auto [entry, is_new] = positions_.try_emplace(*id, weights_.size());
    if (is_new) weights_.push_back({.id = *id, .bytes = data_.weights[*id].bytes, .uses = {}});
    return &weights_[entry->second];
  }

  const EngineData& data_;
  std::map<uint32_t, size_t> positions_;
  std::vector<DeviceWeight> weights_;
};

// Uses of one weight near each other: one copy serves them.
struct Stay {
  const DeviceWeight* weight;
  std::vector<WeightUse> uses;
  uint32_t first_step() const { return uses.front().step; }
  uint32_t last_step() const { return uses.back().step; }
  size_t bytes() const { return aligned(weight->bytes); }
};

std::vector<Stay> stays_of(const std::vector<DeviceWeight>& weights, const std::vector<bool>& streamed) {
  std::vector<Stay> stays;
  for (const DeviceWeight& weight : weights) {
    if (!streamed[weight.id]) continue;
    for (const WeightUse& use : weight.uses) {
      const bool joins = !stays.empty() && stays.back().weight == &weight &&
                         stays.back().uses.back().span == use.span &&
                         use.step - stays.back().last_step() <= kNearSteps;
      if (!joins) stays.push_back({&weight, {}});
      stays.back().uses.push_back(use);
    }
  }
  std::ranges::stable_sort(stays, {}, &Stay::first_step);
  return stays;
}

// Evenly over the program, so that copies have time everywhere; the first weights stay, since a run that
// starts has nothing to do while it waits.
std::vector<bool> choose_streamed(const std::vector<DeviceWeight>& weights, size_t count, double share) {
  std::vector<bool> streamed(count);
  double owed = 0;
  for (const DeviceWeight& weight : weights) {
    if (!weight.may_stream || !weight.is_read_whole) continue;
    owed += share * static_cast<double>(weight.bytes);
    if (owed < static_cast<double>(weight.bytes)) continue;
    owed -= static_cast<double>(weight.bytes);
    streamed[weight.id] = true;
  }
  return streamed;
}

// The most that has to be there at one time, and with the copy that follows.
struct RingSizes {
  size_t needed = 0, ahead = 0;
};

RingSizes ring_sizes(const std::vector<Stay>& stays) {
  RingSizes sizes;
  for (size_t i = 0; i < stays.size(); ++i) {
    size_t live = 0;
    for (size_t k = 0; k <= i; ++k)
      live += stays[k].last_step() >= stays[i].first_step() ? stays[k].bytes() : 0;
    sizes.needed = std::max(sizes.needed, live);
    sizes.ahead = std::max(sizes.ahead, live + (i + 1 < stays.size() ? stays[i + 1].bytes() : 0));
  }
  return sizes;
}

// A ring in which copies are placed one after another.
class Ring {
 public:
  Ring(const Executable& main, size_t bytes) : main_(main), bytes_(bytes) {}

  // False if there is no room: all of the ring is still read when the weight is needed.
  bool add(const Stay& stay) {
    size_t at = next_;
    for (bool wrapped = false;;) {
      if (at + stay.bytes() > bytes_) {
        if (wrapped || stay.bytes() > bytes_) return false;
        wrapped = true;
        at = 0;
      }
      const auto read = std::ranges::find_if(placed_, [&](const Placed& other) {
        return meets(other, at, stay) && other.stay->last_step() >= stay.first_step();
      });
      if (read == placed_.end()) break;
      at = read->offset + read->stay->bytes();
      if (wrapped && at > next_) return false;
    }
    start_ = std::max(start_, main_.spans[stay.uses.front().span].first);
    for (const Placed& other : placed_) {
      if (meets(other, at, stay)) start_ = std::max(start_, other.stay->last_step() + 1);
    }
    fetches_.push_back({.weight = stay.weight->id,
                        .offset = at,
                        .bytes = stay.weight->bytes,
                        .start = start_,
                        .before = stay.first_step()});
    placed_.push_back({&stay, at});
    next_ = at + stay.bytes();
    return true;
  }

  std::vector<WeightFetch> take() && { return std::move(fetches_); }

 private:
  struct Placed {
    const Stay* stay;
    size_t offset;
  };
  static bool meets(const Placed& other, size_t offset, const Stay& stay) {
    return other.offset < offset + stay.bytes() && offset < other.offset + other.stay->bytes();
  }

  const Executable& main_;
  const size_t bytes_;
  size_t next_ = 0;
  uint32_t start_ = 0;  // of the last copy: they are made in order
  std::vector<Placed> placed_;
  std::vector<WeightFetch> fetches_;
};

std::optional<std::vector<WeightFetch>> place_fetches(const Executable& main, const std::vector<Stay>& stays,
                                                      size_t bytes) {
  Ring ring(main, bytes);
  for (const Stay& stay : stays) {
    if (!ring.add(stay)) return std::nullopt;
  }
  return std::move(ring).take();
}

class WeightPlanner {
 public:
  WeightPlanner(const Executable& main, const EngineData& data)
      : main_(main), count_(data.weights.size()), weights_(WeightUses(main, data).take()) {
    for (const DeviceWeight& weight : weights_) total_ += weight.bytes;
    read_there_.resize(count_);
    for (const DeviceWeight& weight : weights_)
      read_there_[weight.id] = weight.may_stream && !weight.is_read_whole;
  }

  WeightPlan plan(size_t budget) const {
    WeightPlan all{.total = total_, .resident = total_};
    WeightPlan smallest = plan_share(1, &RingSizes::needed).value_or(all);
    if (smallest.used() >= total_) smallest = all;
    std::optional<WeightPlan> found;
    if (budget >= total_) found = all;
    for (int share = 0; share <= kShares && !found && budget >= smallest.used(); ++share) {
      for (const auto size : {&RingSizes::ahead, &RingSizes::needed}) {
        if (!found) found = plan_share(static_cast<double>(share) / kShares, size);
        if (found && found->used() > budget) found.reset();
      }
    }
    WeightPlan result = found ? std::move(*found) : smallest;
    result.minimum = smallest.used();
    return result;
  }

 private:
  std::optional<WeightPlan> plan_share(double share, size_t RingSizes::* size) const {
    constexpr size_t kMoreRoom = 8;  // tries, each with an eighth more: neighbours in a ring leave gaps
    WeightPlan plan{.total = total_, .read_there = read_there_};
    plan.streamed = choose_streamed(weights_, count_, share);
    for (const DeviceWeight& weight : weights_) plan.resident += plan.stays(weight.id) ? weight.bytes : 0;
    const std::vector<Stay> stays = stays_of(weights_, plan.streamed);
    const size_t base = ring_sizes(stays).*size;
    for (size_t i = 0; i <= kMoreRoom; ++i) {
      plan.ring = aligned(base + base * i / kMoreRoom);
      const auto fetches = place_fetches(main_, stays, plan.ring);
      if (!fetches) continue;
      plan.fetches = *fetches;
      for (uint32_t k = 0; k < stays.size(); ++k) {
        for (const WeightUse& use : stays[k].uses) plan.arguments.push_back({use.argument, k});
      }
      return plan;
    }
    return std::nullopt;
  }

  const Executable& main_;
  const size_t count_;
  std::vector<DeviceWeight> weights_;
  std::vector<bool> read_there_;
  size_t total_ = 0;
};

}  // namespace

WeightPlan plan_weights(const Executable& main, const EngineData& data, size_t budget) {
  return WeightPlanner(main, data).plan(budget);
}

}  // namespace ingot::core
