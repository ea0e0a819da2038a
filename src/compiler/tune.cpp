// SPDX-License-Identifier: Apache-2.0
#include "compiler/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "backends/executor.h"
#include "compiler/program_timer.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNoise = 0.01;     // of a time: smaller gains of all sites together are none,
constexpr double kNotable = 0.002;  // and smaller ones of a site are not worth a second look
constexpr int kTimedWholly = 5;     // the level that times whole programs for each tactic
constexpr double kMostWholly = 30, kLeastWholly = 5;  // seconds that this may take, about, so that
constexpr double kBuild = 52;                         // the build takes no more

// Steps that compute the same, and so have the same tactics.
struct Site {
  std::string name;
  std::vector<const TunableStep*> steps;
  size_t chosen = 0;             // of their choices
  std::vector<double> alone;     // microseconds of each choice, of all steps together, one after another
  std::vector<double> together;  // of the whole program with each choice; before it is timed, as `alone`
  size_t choices() const { return steps[0]->choices.size(); }
};

// Other tactics for some sites at once.
struct Change {
  Site* site;
  size_t choice;
};
using Move = std::vector<Change>;

struct Pair {
  Site *a, *b;
  size_t steps;  // of one right behind one of the other
};

// The indices of `times`, the shortest first.
std::vector<size_t> ranked(const std::vector<double>& times) {
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t choice) { return times[choice]; });
  return order;
}

// The sites with the most steps first: they gain most.
std::vector<Site> sites_of(std::span<const TunableStep> steps) {
  std::vector<Site> sites;
  std::map<std::string, size_t> known;
  for (const TunableStep& step : steps) {
    const auto [entry, is_new] = known.try_emplace(step.site, sites.size());
    if (is_new) sites.push_back({step.site, {}});
    sites[entry->second].steps.push_back(&step);
  }
  std::ranges::stable_sort(sites, std::greater{}, [](const Site& site) { return site.steps.size(); });
  return sites;
}

class Tuner {
 public:
  Tuner(EngineData& engine, std::span<const TunableStep> steps, const Tuning& tuning, TacticTable& found)
      : main_(engine.main),
        tuning_(tuning),
        found_(found),
        sites_(sites_of(steps)),
        overlaps_(!engine.devices.empty()),
        timer_(engine, tuning.host, tuning.gpu, tuning.quiet) {}

  TuningReport run() {
    report_.sites = sites_.size();
    plan_work();
    const double before = whole();
    time_alone();
    take_fastest_alone();
    if (whole() > before * (1 - kNoise)) go_back();
    if (tuning_.level >= kTimedWholly) time_together();
    for (const Site& site : sites_) record(site);
    report_.before_us = before;
    report_.after_us = std::min(whole(), before);
    return report_;
  }

 private:
  double whole() {
    ++report_.timed;
    return timer_.microseconds(main_);
  }

  void choose(Site& site, size_t choice) {
    site.chosen = choice;
    for (const TunableStep* step : site.steps)
      main_.steps[step->step].as<KernelStep>()->launch = step->choices[choice].launch;
  }

  size_t most_choices() const {
    size_t most = 0;
    for (const Site& site : sites_) most = std::max(most, site.choices());
    return most;
  }

  void plan_work() {
    work_ = most_choices();
    if (tuning_.level < kTimedWholly) return;
    for (const Site& site : sites_) work_ += site.choices() - 1;
  }
  void report_progress() { tuning_.phases.report(std::min(++done_, work_), work_); }

  // Choice k of all sites at once, for each k: steps do not disturb each other. If one of them is refused, of
  // one site after another.
  void time_alone() {
    for (Site& site : sites_) site.alone.assign(site.choices(), std::numeric_limits<double>::infinity());
    for (size_t k = 0; k < most_choices(); ++k) {
      for (Site& site : sites_) choose(site, k % site.choices());
      if (!time_steps(sites_)) {
        for (Site& site : sites_) {
          go_back();
          choose(site, k % site.choices());
          time_steps({&site, 1});
        }
      }
      report_progress();
    }
  }

  // False if the library that a tactic calls refuses to: perhaps it cannot start on this machine.
  bool time_steps(std::span<Site> sites) {
    ++report_.timed;
    std::vector<double> times;
    try {
      times = timer_.step_microseconds(main_);
    } catch (const DeviceError& error) {
      if (error.details().code != kRefusedByLibrary) throw;
      return false;
    }
    for (Site& site : sites) {
      double all = 0;
      for (const TunableStep* step : site.steps) all += times.at(step->step);
      site.alone[site.chosen] = std::min(site.alone[site.chosen], all);
    }
    return true;
  }

  void take_fastest_alone() {
    for (Site& site : sites_) {
      const size_t fastest = ranked(site.alone)[0];
      choose(site, site.alone[fastest] < site.alone[0] * (1 - kNoise) ? fastest : 0);
    }
  }
  void go_back() {
    for (Site& site : sites_) choose(site, 0);
  }

  // Neighbours change what is fastest: whole programs with each tactic of a site, and then again with the
  // most promising ones, since the neighbours have changed; at the end of that, two neighbours at once.
  void time_together() {
    constexpr size_t kAll = std::numeric_limits<size_t>::max(), kPromising = 6;
    const Clock::time_point end = Clock::now() + time_for_wholes();
    const std::vector<Pair> pairs = neighbours();
    for (Site& site : sites_) site.together = site.alone;
    for (size_t most = kAll; Clock::now() < end; most = kPromising) {
      bool is_better = false;
      for (size_t i = 0; i < sites_.size(); ++i) {
        const auto share = (end - Clock::now()) / static_cast<int64_t>(sites_.size() - i);
        is_better = improve(sites_[i], most, Clock::now() + share) || is_better;
        record(sites_[i]);
      }
      if (!is_better && !(overlaps_ && improve_pairs(pairs, end))) break;
    }
  }

  // Sites whose steps follow each other, those with the most steps first.
  std::vector<Pair> neighbours() {
    std::map<size_t, Site*> site_of;
    for (Site& site : sites_)
      for (const TunableStep* step : site.steps) site_of[step->step] = &site;
    std::map<std::pair<Site*, Site*>, size_t> steps;
    for (auto after = site_of.begin(); after != site_of.end(); ++after) {
      const auto before = after == site_of.begin() ? after : std::prev(after);
      if (before->second != after->second) ++steps[std::minmax(before->second, after->second)];
    }
    std::vector<Pair> pairs;
    for (const auto& [sites, count] : steps) pairs.push_back({sites.first, sites.second, count});
    std::ranges::stable_sort(pairs, std::greater{}, &Pair::steps);
    return pairs;
  }

  // The next kernel starts while one ends, and each takes what the other leaves free: neither may gain alone.
  bool improve_pairs(std::span<const Pair> pairs, Clock::time_point end) {
    constexpr size_t kPromising = 5;
    bool is_better = false;
    for (const Pair& pair : pairs) {
      std::vector<Move> moves;
      for (const size_t a : promising(*pair.a, kPromising)) {
        for (const size_t b : promising(*pair.b, kPromising)) {
          if (a != pair.a->chosen && b != pair.b->chosen) moves.push_back({{pair.a, a}, {pair.b, b}});
        }
      }
      is_better = take_fastest(moves, end) || is_better;
      record(*pair.a);
      record(*pair.b);
    }
    return is_better;
  }

  // A build whose many kernels took long to compile has less.
  Clock::duration time_for_wholes() const {
    double before = 0;
    for (const Phases::Phase& phase : tuning_.phases.phases()) before += phase.seconds;
    const std::chrono::duration<double> left(std::clamp(kBuild - before, kLeastWholly, kMostWholly));
    return std::chrono::duration_cast<Clock::duration>(left);
  }

  // The shortest of what was timed first; none that the machine refused.
  static std::vector<size_t> promising(const Site& site, size_t most) {
    std::vector<size_t> order = ranked(site.together);
    std::erase_if(order, [&](size_t choice) { return std::isinf(site.alone[choice]); });
    order.resize(std::min(order.size(), most));
    return order;
  }

  // Tries at most so many tactics, the most promising first, while there is time.
  bool improve(Site& site, size_t most, Clock::time_point end) {
    std::vector<Move> moves;
    for (const size_t choice : promising(site, most)) {
      if (choice != site.chosen) moves.push_back({{&site, choice}});
    }
    return take_fastest(moves, end);
  }

  // What `move` changes, as it is.
  static Move undo_of(const Move& move) {
    Move undo;
    for (const Change& change : move) undo.push_back({change.site, change.site->chosen});
    return undo;
  }
  double time(const Move& move) {
    for (const Change& change : move) choose(*change.site, change.choice);
    return whole();
  }

  // Makes the fastest of the moves, if the program is faster with it. They change the same sites.
  bool take_fastest(std::span<const Move> moves, Clock::time_point end) {
    if (moves.empty()) return false;
    const Move before = undo_of(moves[0]);
    const Move* fastest = nullptr;
    double fastest_us = whole() * (1 - kNotable);
    for (const Move& move : moves) {
      report_progress();
      if (Clock::now() > end) break;
      const double us = time(move);
      if (move.size() == 1) move[0].site->together[move[0].choice] = us;
      if (us >= fastest_us) continue;
      fastest = &move;
      fastest_us = us;
    }
    const bool is_better = fastest != nullptr && is_faster(*fastest, before);
    for (const Change& change : is_better ? *fastest : before) choose(*change.site, change.choice);
    return is_better;
  }

  // One of many can be the fastest by chance: both in turns, and each time of `fastest` has to be shorter
  // than each of `before`.
  bool is_faster(const Move& fastest, const Move& before) {
    constexpr int kTurns = 3;
    double shortest_before = std::numeric_limits<double>::infinity(), longest = 0;
    for (int turn = 0; turn < kTurns && longest < shortest_before; ++turn) {
      shortest_before = std::min(shortest_before, time(before));
      longest = std::max(longest, time(fastest));
    }
    return longest < shortest_before;
  }

  void record(const Site& site) {
    const TunableStep& first = *site.steps[0];
    found_.set(tuning_.processor, site.name,
               {tuning_.level, first.choices[site.chosen].tactic, main_.steps[first.step].name});
  }

  Program& main_;
  const Tuning& tuning_;
  TacticTable& found_;
  std::vector<Site> sites_;
  const bool overlaps_;  // kernels of GPUs do
  ProgramTimer timer_;
  size_t work_ = 0, done_ = 0;
  TuningReport report_;
};

template <typename Visit>
void visit_images(Program& program, const Visit& visit) {
  for (Step& step : program.steps) {
    if (auto* kernel = step.as<KernelStep>()) visit(kernel->launch.image);
    auto* routine = step.as<RoutineStep>();
    if (routine != nullptr && routine->image != kNoId) visit(routine->image);
    if (routine != nullptr && routine->with_next != kNoId) visit(routine->with_next);
  }
  for (Program& nested : program.nested) visit_images(nested, visit);
}

}  // namespace

std::vector<TunableStep> tunable_steps(std::span<const NodeStep> steps, const Program& planned) {
  std::vector<TunableStep> tunable;
  size_t at = 0;
  for (const NodeStep& node_step : steps) {
    while (at < planned.steps.size() && planned.steps[at].as<CopyStep>() != nullptr) ++at;
    invariant(at < planned.steps.size(), "the plan has fewer steps than were lowered");
    const size_t step = at++;
    if (node_step.step.others.empty()) continue;
    const LoweredKernel& chosen = *node_step.step.kernel();
    TunableStep& entry = tunable.emplace_back();
    entry.step = step;
    entry.site = node_step.step.site;
    entry.choices.push_back({chosen.tactic, chosen.launch});
    for (const LoweredKernel& other : node_step.step.others)
      entry.choices.push_back({other.tactic, other.launch});
  }
  return tunable;
}

TuningReport tune(EngineData& engine, std::span<const TunableStep> steps, const Tuning& tuning,
                  TacticTable& found) {
  return Tuner(engine, steps, tuning, found).run();
}

void drop_unused_images(EngineData& engine) {
  std::map<ImageId, ImageId> kept;
  std::vector<Image> images;
  const auto keep = [&](ImageId& image) {
    const auto [entry, is_new] = kept.try_emplace(image, static_cast<ImageId>(images.size()));
    if (is_new) images.push_back(std::move(engine.images[image]));
    image = entry->second;
  };
  visit_images(engine.init, keep);
  visit_images(engine.main, keep);
  engine.images = std::move(images);
}

}  // namespace ingot::core
