// SPDX-License-Identifier: Apache-2.0
// ingot_random_graphs: random graphs for hours, in shards, and on from where it stopped.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>

#include "backends/cpu/execute/execute.h"
#include "support/file.h"
#include "tests/random/maker.h"
#include "tests/random/session.h"

namespace {

using namespace ingot::core;
using namespace ingot::core::random_graphs;

constexpr const char* kUsage =
    "usage: ingot_random_graphs [--seed N] [--first I] [--count N] [--shard I/N] [--resume FILE] [--out "
    "FOLDER]\n"
    "       ingot_random_graphs --replay FILE     run a case that was written\n"
    "       ingot_random_graphs --print INDEX [--seed N]\n"
    "Runs the cases first..first+count-1 whose index is I modulo N. FILE keeps how far it came; a case that "
    "was\n"
    "running when the process died counts as failed. Each failure is shrunk and written to FOLDER as .ir.\n";

struct Options {
  std::map<std::string, std::string> given;

  uint64_t number(const std::string& name, uint64_t fallback) const {
    const auto found = given.find(name);
    if (found == given.end()) return fallback;
    return parse(found->second);
  }
  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = given.find(name);
    return found == given.end() ? fallback : found->second;
  }
  static uint64_t parse(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw std::runtime_error(fmt::format("\"{}\" is not a whole number", text));
    return value;
  }
};

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    if (!name.starts_with("--") || i + 1 >= count) throw std::runtime_error(kUsage);
    options.given[name.substr(2)] = words[i + 1];
  }
  return options;
}

// "running INDEX FAILURES" before a case, "next INDEX FAILURES" after it.
class Progress {
 public:
  explicit Progress(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_);
    std::string word;
    if (!path_.empty() && file >> word >> next_ >> failures_) crashed_ = word == "running";
  }
  void save(const char* word, uint64_t index) const {
    if (path_.empty()) return;
    std::ofstream(path_ + ".new") << word << ' ' << index << ' ' << failures_ << '\n';
    std::filesystem::rename(path_ + ".new", path_);
  }
  uint64_t next() const { return next_; }
  bool crashed() const { return crashed_; }
  uint64_t failures() const { return failures_; }
  void count_failure() { ++failures_; }

 private:
  std::string path_;
  uint64_t next_ = 0, failures_ = 0;
  bool crashed_ = false;
};

void write(const std::filesystem::path& folder, uint64_t seed, uint64_t index, const std::string& text) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / fmt::format("{}_{}.ir", seed, index)) << text;
  std::fputs(text.substr(0, text.find("\n-- numerics")).c_str(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

int run(const Options& options, Host& host) {
  const uint64_t seed = options.number("seed", 1), first = options.number("first", 0);
  const uint64_t end = first + options.number("count", 1000);
  const std::string shard = options.text("shard", "0/1");
  const size_t slash = std::min(shard.find('/'), shard.size() - 1);
  const uint64_t own = Options::parse(shard.substr(0, slash)),
                 shards = Options::parse(shard.substr(slash + 1));
  const std::filesystem::path out = options.text("out", "random_failures");
  Progress progress(options.text("resume", ""));
  uint64_t index = std::max(first + own, progress.next());
  if (progress.crashed()) {
    progress.count_failure();
    write(out, seed, index,
          fmt::format("-- seed {} case {}: the process died\n", seed, index) +
              write_case(make_case(case_seed(seed, index))));
    index += shards;
  }
  const std::vector<Build> builds = all_builds();
  uint64_t done = 0;
  for (; index < end; index += shards, ++done) {
    progress.save("running", index);
    const bool right = run_case(seed, index, builds, host,
                                [&](const Found& found) { write(out, seed, index, describe(seed, found)); });
    if (!right) progress.count_failure();
    progress.save("next", index + shards);
  }
  fmt::print("seed {}: {} cases in this run, {} failures in all\n", seed, done, progress.failures());
  return progress.failures() == 0 ? 0 : 1;
}

int replay(const std::string& path, Host& host) {
  const Case test = read_case(read_text_file(path));
  const std::vector<Build> builds = all_builds();
  int status = 0;
  for (const Build& build : builds) {
    const Failure failure = check(test, {&build, 1}, host);
    fmt::print("{}: {}\n", to_string(build), failure.found() ? failure.problem : "right");
    if (failure.found()) status = 1;
  }
  return status;
}

}  // namespace

int main(int count, char** words) {
  try {
    const Options options = read_options(count, words);
    const Executor* const executors[] = {&cpu::executor()};
    Host host({.threads = static_cast<int>(options.number("threads", 1))}, executors);
    if (options.given.contains("replay")) return replay(options.given.at("replay"), host);
    if (!options.given.contains("print")) return run(options, host);
    const uint64_t seed = case_seed(options.number("seed", 1), options.number("print", 0));
    std::fputs(write_case(make_case(seed)).c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
