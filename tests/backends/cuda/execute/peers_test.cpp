// SPDX-License-Identifier: Apache-2.0
// Reductions over memory that ranks write for each other: here all ranks are streams of one GPU.
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "backends/cuda/compile/peer_text.h"
#include "backends/cuda/compile/prelude.h"
#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/peer_memory.h"
#include "ops/collective.h"
#include "ops/ops.h"
#include "ops/region.h"
#include "ops/select.h"
#include "ops/view.h"
#include "tests/backends/cuda/run_kernels.h"
#include "types/tensor.h"

namespace ingot::core::cuda {
namespace {

struct Source {
  std::string entry, text;
};
Source source_of(DType dtype, const std::string& reduction) {
  Graph graph;
  Value* x = graph.add_input("x", {dtype, {Dim(8)}});
  const Node* node = graph.add(ops::all_reduce, {x}, ops::ReducingCollective{{"", 0, -1}, reduction});
  EXPECT_TRUE(has_peer_kernel(*node));
  return {peer_entry(*node), prelude() + write_peer_kernel(*node)};
}

TEST(CudaPeers, KernelsCompile) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const char* reduction : {"sum", "avg"})
      for (const char* architecture : {"sm_80", "sm_90a", "compute_90"})
        EXPECT_FALSE(test::nvrtc()->compile(source_of(dtype, reduction).text, architecture).empty());
}

// (sum + bias) + residual, in `result`.
struct Followed {
  Source source;
  std::vector<std::string> buffers;  // by name; "": the result
};
Followed followed_source(DType dtype, DType result, const Shape& shape) {
  Graph graph, next;
  Value* x = graph.add_input("x", {dtype, shape});
  const Node* node = graph.add(ops::all_reduce, {x}, ops::ReducingCollective{{"", 0, -1}, "sum"});
  Value* sum = next.add_input("sum", {dtype, shape});
  Value* bias = next.add_input("bias", {dtype, {shape.back()}});
  Value* residual = next.add_input("residual", {dtype, shape});
  std::vector<const Node*> nodes = {next.add(ops::add, {sum, bias})};
  nodes.push_back(next.add(ops::add, {nodes.back()->results[0], residual}));
  if (result != dtype)
    nodes.push_back(next.add(ops::convert, {nodes.back()->results[0]}, ops::Convert{result}));
  const Value* const outputs[] = {nodes.back()->results[0]};
  const RegionKernel region = compose_region(nodes, outputs);
  const auto position = std::ranges::find(region.buffers, sum) - region.buffers.begin();
  std::vector<std::string> buffers;
  for (const Value* value : region.buffers) buffers.push_back(value == outputs[0] ? "" : value->name);
  const int reduced[] = {static_cast<int>(position)};
  const std::optional<PeerNext> written = write_peer_next(region.kernel, reduced, dtype);
  EXPECT_TRUE(written.has_value());
  return {{peer_entry(*node) + kPeerNext, prelude() + write_peer_kernel(*node, *written)}, buffers};
}

const Shape kFollowedShapes[] = {{1, 2048}, {4, 64}, {3, 5}, {1}, {2, 3, 6}, {7, 4096}, {1, 7}};

TEST(CudaPeers, KernelsThatDoWhatFollowsCompile) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const DType result : {dtype, DType::kF64})
      for (const Shape& shape : kFollowedShapes)
        EXPECT_FALSE(
            test::nvrtc()->compile(followed_source(dtype, result, shape).source.text, "sm_90a").empty());
}

TEST(CudaPeers, OnlyMapsOfAllElementsFollow) {
  const auto follows = [](const Shape& read, auto&& of) {
    Graph graph;
    Value* sum = graph.add_input("sum", {DType::kF32, {Dim(4), Dim(6)}});
    Value* other = graph.add_input("other", {DType::kF32, read});
    const Node* node = of(graph, sum, other);
    const Value* const outputs[] = {node->results[0]};
    const RegionKernel region = compose_region(std::array{node}, outputs);
    const int reduced[] = {static_cast<int>(std::ranges::find(region.buffers, sum) - region.buffers.begin())};
    return write_peer_next(region.kernel, reduced, DType::kF32).has_value();
  };
  const auto sum_of = [](Graph& graph, Value* a, Value* b) { return graph.add(ops::add, {a, b}); };
  EXPECT_TRUE(follows({Dim(4), Dim(6)}, sum_of));
  EXPECT_TRUE(follows({Dim(1), Dim(6)}, sum_of));
  EXPECT_TRUE(follows({}, sum_of));
  EXPECT_FALSE(follows({Dim(2), Dim(4), Dim(6)}, sum_of));  // each element is read twice
  const auto transposed = [](Graph& graph, Value* a, Value*) {
    return graph.add(ops::transpose, {a}, ops::Permutation{{1, 0}});
  };
  EXPECT_FALSE(follows({}, transposed));
}

TEST(CudaPeers, MailboxesHaveRoomForWhatIsSent) {
  for (int64_t ranks = 2; ranks <= kMostPeers; ++ranks) {
    EXPECT_LE(most_peer_bytes(ranks), peer_lines(ranks) * kPeerLine);
    EXPECT_LE(2 * ranks * peer_lines(ranks) * 2 * kPeerLine, kMailboxBytes);
  }
}

using Words = std::vector<uint64_t>;

// The ranks of one test: their mailboxes and streams.
class Ranks {
 public:
  Ranks(int count, const Source& source) : device_(Device::get(0)), current_(device_.enter()) {
    const Driver& driver = device_.driver();
    const auto code = test::nvrtc()->compile(source.text, test::gpu()->architecture());
    check(driver, driver.load_module(&module_, code.data()), "cuModuleLoadData");
    check(driver, driver.function(&function_, module_, source.entry.c_str()), "cuModuleGetFunction");
    std::vector<PeerHandle> handles;
    for (int rank = 0; rank < count; ++rank) {
      std::string reason;
      peers_.push_back(PeerMemory::make(device_, reason));
      EXPECT_EQ(reason, "");
      handles.push_back(peers_.back()->handle());
      streams_.push_back(nullptr);
      check(driver, driver.create_stream(&streams_.back(), 1), "cuStreamCreate");
    }
    for (int rank = 0; rank < count; ++rank)
      EXPECT_EQ(peers_[static_cast<size_t>(rank)]->connect(handles, rank), "");
  }
  ~Ranks() {
    for (const Handle stream : streams_) device_.driver().destroy_stream(stream);
    device_.driver().unload_module(module_);
  }

  // Each rank's result, of operands by rank.
  std::vector<std::vector<std::byte>> reduce(const std::vector<std::vector<std::byte>>& operands,
                                             size_t elements, const std::vector<Words>& more = {}) {
    const size_t bytes = operands[0].size();
    std::vector<std::shared_ptr<std::byte>> from, to;
    for (const auto& operand : operands) {
      from.push_back(device_.allocate(bytes));
      to.push_back(device_.allocate(bytes));
      device_.copy(from.back().get(), operand.data(), bytes);
    }
    for (size_t rank = 0; rank < operands.size(); ++rank)
      launch(rank, from[rank], to[rank], elements, bytes, more.empty() ? Words{} : more[rank]);
    for (const Handle stream : streams_)
      check(device_.driver(), device_.driver().synchronize(stream), "cuStreamSynchronize");
    std::vector<std::vector<std::byte>> results(operands.size(), std::vector<std::byte>(bytes));
    for (size_t rank = 0; rank < operands.size(); ++rank)
      device_.copy(results[rank].data(), to[rank].get(), bytes);
    return results;
  }

  void launch(size_t rank, const std::shared_ptr<std::byte>& from, const std::shared_ptr<std::byte>& to,
              size_t elements, size_t bytes, const Words& more = {}) {
    Words words = {address(from.get()), address(to.get()), elements};
    words.insert(words.end(), peers_[rank]->arguments().begin(), peers_[rank]->arguments().end());
    words.insert(words.end(), more.begin(), more.end());
    std::vector<void*> arguments;
    for (uint64_t& word : words) arguments.push_back(&word);
    const LaunchConfig config{.grid = {peer_blocks(bytes), 1, 1},
                              .block = {kPeerThreads, 1, 1},
                              .shared_bytes = 0,
                              .stream = streams_[rank],
                              .attributes = nullptr,
                              .attribute_count = 0};
    check(device_.driver(), device_.driver().launch(&config, function_, arguments.data(), nullptr),
          "cuLaunchKernelEx");
  }

  void end(size_t rank) { peers_[rank]->end(); }
  bool is_done(size_t rank) { return device_.driver().synchronize(streams_[rank]) == 0; }

 private:
  Device& device_;
  CurrentContext current_;
  Handle module_ = nullptr, function_ = nullptr;
  std::vector<std::unique_ptr<PeerMemory>> peers_;
  std::vector<Handle> streams_;
};

float read(DType dtype, const std::byte* from) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return dtype == DType::kF16 ? half_to_float(bits) : bfloat16_to_float(bits);
}
void write(DType dtype, float value, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const uint16_t bits = dtype == DType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
  std::memcpy(to, &bits, sizeof(bits));
}

// In the order of the ranks, in f32, rounded once.
std::vector<std::byte> expected(DType dtype, const std::vector<std::vector<std::byte>>& operands,
                                size_t width, bool is_average) {
  std::vector<std::byte> result(operands[0].size());
  for (size_t at = 0; at < result.size(); at += width) {
    float sum = read(dtype, &operands[0][at]);
    for (size_t rank = 1; rank < operands.size(); ++rank) sum += read(dtype, &operands[rank][at]);
    write(dtype, is_average ? sum / static_cast<float>(operands.size()) : sum, &result[at]);
  }
  return result;
}

TEST(CudaPeers, AllRanksHaveTheBitsOfSumsInTheirOrder) {
  if (test::nvrtc() == nullptr || test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU";
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const size_t width = dtype == DType::kF32 ? 4 : 2;
    for (const bool is_average : {false, true}) {
      const Source source = source_of(dtype, is_average ? "avg" : "sum");
      for (const int ranks : {2, 3, 8}) {
        Ranks all(ranks, source);
        const auto most = static_cast<size_t>(most_peer_bytes(ranks)) / width;
        for (const size_t elements :
             {size_t{1}, size_t{3}, size_t{2048}, most, size_t{1000}, most - 1, size_t{5}}) {
          std::vector<std::vector<std::byte>> operands(static_cast<size_t>(ranks),
                                                       std::vector<std::byte>(elements * width));
          for (auto& operand : operands)
            for (size_t at = 0; at < operand.size(); at += width) write(dtype, normal(random), &operand[at]);
          const std::vector<std::byte> wanted = expected(dtype, operands, width, is_average);
          for (const auto& got : all.reduce(operands, elements))
            EXPECT_TRUE(got == wanted)
                << name(dtype) << " " << ranks << " ranks, " << elements << " elements";
        }
      }
    }
  }
}

std::vector<std::byte> random_elements(DType dtype, size_t elements, std::mt19937& random) {
  std::normal_distribution<float> normal;
  const size_t width = static_cast<size_t>(bit_width(dtype)) / 8;
  std::vector<std::byte> made(elements * width);
  for (size_t at = 0; at < made.size(); at += width) write(dtype, normal(random), &made[at]);
  return made;
}

// What follows has the sum as it is stored, and is stored itself: rounded twice.
std::vector<std::byte> followed(DType dtype, DType result, const std::vector<std::byte>& sum,
                                const std::vector<std::byte>& bias, const std::vector<std::byte>& residual) {
  const size_t width = static_cast<size_t>(bit_width(dtype)) / 8,
               to = static_cast<size_t>(bit_width(result)) / 8;
  std::vector<std::byte> wanted(sum.size() / width * to);
  for (size_t i = 0; i < sum.size() / width; ++i) {
    const float value = read(dtype, &sum[i * width]) + read(dtype, &bias[i * width % bias.size()]) +
                        read(dtype, &residual[i * width]);
    write(result, value, &wanted[i * to]);
  }
  return wanted;
}

TEST(CudaPeers, WhatFollowsIsDoneByTheSameKernel) {
  if (test::nvrtc() == nullptr || test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU";
  std::mt19937 random(7);
  Device& device = Device::get(0);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType result : {dtype, DType::kF32}) {
      for (const Shape& shape : kFollowedShapes) {
        const Followed kernel = followed_source(dtype, result, shape);
        Ranks all(2, kernel.source);
        const auto elements = static_cast<size_t>(*product(shape).constant());
        const std::vector<std::byte> bias =
            random_elements(dtype, static_cast<size_t>(*shape.back().constant()), random);
        for (int turn = 0; turn < 3; ++turn) {
          std::vector<std::vector<std::byte>> operands;
          for (int rank = 0; rank < 2; ++rank) operands.push_back(random_elements(dtype, elements, random));
          const std::vector<std::byte> residual = random_elements(dtype, elements, random);
          const std::vector<std::byte> sum =
              expected(dtype, operands, static_cast<size_t>(bit_width(dtype)) / 8, false);
          const std::vector<std::byte> wanted = followed(dtype, result, sum, bias, residual);
          std::vector<std::shared_ptr<std::byte>> memory;
          const auto given = [&](const std::vector<std::byte>& bytes) {
            memory.push_back(device.allocate(bytes.size()));
            device.copy(memory.back().get(), bytes.data(), bytes.size());
            return address(memory.back().get());
          };
          std::vector<Words> more;
          std::vector<std::byte*> results;
          for (int rank = 0; rank < 2; ++rank) {
            const std::map<std::string, std::vector<std::byte>> values = {
                {"sum", {}},
                {"bias", bias},
                {"residual", residual},
                {"", std::vector<std::byte>(wanted.size())}};
            Words& words = more.emplace_back();
            for (const std::string& buffer : kernel.buffers) {
              words.push_back(values.at(buffer).empty() ? 0 : given(values.at(buffer)));
              if (buffer.empty()) results.push_back(memory.back().get());
            }
          }
          for (const auto& got : all.reduce(operands, elements, more)) EXPECT_TRUE(got == sum);
          for (const std::byte* from : results) {
            std::vector<std::byte> got(wanted.size());
            device.copy(got.data(), from, got.size());
            EXPECT_TRUE(got == wanted) << name(dtype) << " to " << name(result) << " of " << to_string(shape);
          }
        }
      }
    }
  }
}

TEST(CudaPeers, AFailureEndsTheWait) {
  if (test::nvrtc() == nullptr || test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU";
  Ranks all(2, source_of(DType::kF32, "sum"));
  Device& device = Device::get(0);
  const auto x = device.allocate(4096), y = device.allocate(4096);
  all.launch(0, x, y, 1024, 4096);  // and the other rank never comes
  all.end(0);
  EXPECT_TRUE(all.is_done(0));
}

}  // namespace
}  // namespace ingot::core::cuda
