// SPDX-License-Identifier: Apache-2.0
// Reductions over memory that ranks write for each other: here all ranks are streams of one GPU.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "backends/cuda/compile/peer_text.h"
#include "backends/cuda/compile/prelude.h"
#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/peer_memory.h"
#include "ops/collective.h"
#include "ops/ops.h"
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

TEST(CudaPeers, MailboxesHaveRoomForWhatIsSent) {
  for (int64_t ranks = 2; ranks <= kMostPeers; ++ranks) {
    EXPECT_LE(most_peer_bytes(ranks), peer_lines(ranks) * kPeerLine);
    EXPECT_LE(2 * ranks * peer_lines(ranks) * 2 * kPeerLine, kMailboxBytes);
  }
}

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
                                             size_t elements) {
    const size_t bytes = operands[0].size();
    std::vector<std::shared_ptr<std::byte>> from, to;
    for (const auto& operand : operands) {
      from.push_back(device_.allocate(bytes));
      to.push_back(device_.allocate(bytes));
      device_.copy(from.back().get(), operand.data(), bytes);
    }
    for (size_t rank = 0; rank < operands.size(); ++rank) launch(rank, from[rank], to[rank], elements, bytes);
    for (const Handle stream : streams_)
      check(device_.driver(), device_.driver().synchronize(stream), "cuStreamSynchronize");
    std::vector<std::vector<std::byte>> results(operands.size(), std::vector<std::byte>(bytes));
    for (size_t rank = 0; rank < operands.size(); ++rank)
      device_.copy(results[rank].data(), to[rank].get(), bytes);
    return results;
  }

  void launch(size_t rank, const std::shared_ptr<std::byte>& from, const std::shared_ptr<std::byte>& to,
              size_t elements, size_t bytes) {
    uint64_t words[3 + kPeerArguments] = {address(from.get()), address(to.get()), elements};
    std::ranges::copy(peers_[rank]->arguments(), words + 3);
    void* arguments[std::size(words)];
    for (size_t i = 0; i < std::size(words); ++i) arguments[i] = &words[i];
    const LaunchConfig config{.grid = {peer_blocks(bytes), 1, 1},
                              .block = {kPeerThreads, 1, 1},
                              .shared_bytes = 0,
                              .stream = streams_[rank],
                              .attributes = nullptr,
                              .attribute_count = 0};
    check(device_.driver(), device_.driver().launch(&config, function_, arguments, nullptr),
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
