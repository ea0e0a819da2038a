// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/compile/half_functions.h"

#include <algorithm>
#include <array>

#include "backends/cuda/compile/contraction_epilogue.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/type_text.h"
#include "ops/convolution.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int kBlockThreads = 128;
constexpr int64_t kChannels = 8;     // of a thread: 16 bytes
constexpr int64_t kFewestTaps = 25;  // fewer are left to plain loops, which have a thread per channel
constexpr int64_t kMostTaps = 128, kMostAcross = 16,
                  kLongestSpan = 40;  // of a row of the image, all unrolled
constexpr int64_t kManyThreads =
    static_cast<int64_t>(kMultiprocessors) * kBlockThreads;  // enough to keep a GPU busy

//   for a thread's 8 channels of kAcross adjacent results of a row:
//     for row of the window: its weights -> registers
//       for pixel that a result reads: 8 channels, times the weight of each result that reads it
//     epilogue
// A pixel is loaded once for all results of the thread.
constexpr std::string_view kSum = R"cuda(
constexpr int kLinesAtOnce = kTapsX * kTapsY <= 25 && kAcross <= 2 ? kTapsY : kTapsX <= 7 && kAcross == 1 ? 2 : 1;  // whose loads are on their way together
constexpr int kSpan = (kAcross - 1) * kStrideX + (kTapsX - 1) * kDilationX + 1;

template <bool aligned> DEVICE void load_channels(Row& row, const Element* p) {
  if (aligned) row = *(const Row*)p;
  else
    #pragma unroll
    for (int k = 0; k < 8; ++k) row.each[k] = p[k];
}

// Places outside of the image are loaded from its edge, and count as zeros.
template <bool aligned> DEVICE void sum_windows(f32 (&sums)[kAcross][8], idx image, idx first_y, idx first_x, idx channel, const Operands& x) {
  if (x.height == 0 || x.width == 0) return;
  #pragma unroll kLinesAtOnce
  for (int ty = 0; ty < kTapsY; ++ty) {
    const idx y = first_y + ty * kDilationY;
    const Element* const line = x.a + (image * x.height + least(most<idx>(y, 0), x.height - 1)) * x.width * x.columns + channel;
    Row weights[kTapsX], places[kSpan];
    #pragma unroll
    for (int tx = 0; tx < kTapsX; ++tx) load_channels<aligned>(weights[tx], x.b + (ty * kTapsX + tx) * x.columns + channel);
    #pragma unroll
    for (int p = 0; p < kSpan; ++p) load_channels<aligned>(places[p], line + least(most<idx>(first_x + p, 0), x.width - 1) * x.columns);
    #pragma unroll
    for (int p = 0; p < kSpan; ++p) {
      const bool is_inside = y >= 0 && y < x.height && first_x + p >= 0 && first_x + p < x.width;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const f32 value = is_inside ? number_of<kBf16>(places[p], k) : 0;
        #pragma unroll
        for (int a = 0; a < kAcross; ++a) {
          const int reach = p - a * kStrideX;
          if (reach < 0 || reach % kDilationX != 0 || reach / kDilationX >= kTapsX) continue;
          sums[a][k] = fmaf(value, number_of<kBf16>(weights[reach / kDilationX], k), sums[a][k]);
        }
      }
    }
  }
}
)cuda";

// The pixels of a row that `across` adjacent results read.
int64_t span_of(const Node& node, int64_t across) {
  const auto convolution = node.attributes<ops::Convolution>();
  const int64_t taps = *node.operand_type(1).shape[3].constant();
  return (across - 1) * convolution.stride[1] + (taps - 1) * convolution.dilation[1] + 1;
}

class DepthwiseWriter {
 public:
  DepthwiseWriter(const Node& node, const SymbolTable& symbols, loops::Kernel epilogue)
      : node_(node),
        attributes_(node.attributes<ops::Convolution>()),
        epilogue_(std::move(epilogue)),
        shape_(product_shape(node)),
        out_(node, kernels(), symbols) {
    const Shape& result = node.results[0]->type.shape;
    lines_ = result[0] * result[2];
    width_ = result[3];
    chunks_ = floor_divide(shape_.columns, Dim(kChannels));
    const int64_t results = out_.typical(lines_ * chunks_) * out_.typical(width_);
    while (across_ > 1 && (results / across_ < kManyThreads || out_.typical(width_) < across_ ||
                           span_of(node, across_) > kLongestSpan))
      across_ /= 2;
  }

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    write_constants();
    out_.line("struct Operands {{ const Element *a, *b; idx columns, height, width{}; }};\n",
              out_.symbol_fields());
    out_.text += kSum;
    write_kernel();
    const Dim items = lines_ * ceil_divide(width_, Dim(across_)) * chunks_;
    return {.threads = kBlockThreads,
            .items = ceil_divide(items, Dim(kBlockThreads)),
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + out_.text};
  }

 private:
  std::array<const loops::Kernel*, 1> kernels() const { return {&epilogue_}; }

  void write_constants() {
    const Shape& weight = node_.operand_type(1).shape;
    const DType dtype = node_.operand_type(0).dtype;
    write_element_functions(dtype, out_);
    out_.line("typedef {}<8> Row;\n", dtype == DType::kF32 ? "Floats" : "Halves");
    out_.line("constexpr int kAcross = {}, kTapsY = {}, kTapsX = {};\n", across_, *weight[2].constant(),
              *weight[3].constant());
    out_.line("constexpr int kStrideY = {}, kStrideX = {}, kPaddingY = {}, kPaddingX = {};\n",
              attributes_.stride[0], attributes_.stride[1], attributes_.padding[0], attributes_.padding[1]);
    out_.line("constexpr int kDilationY = {}, kDilationX = {};\n", attributes_.dilation[0],
              attributes_.dilation[1]);
  }

  void write_kernel() {
    const Shape& input = node_.operand_type(0).shape;
    out_.line("extern \"C\" __global__ void __launch_bounds__({}) ingot_kernel(", kBlockThreads);
    write_operand_arguments(epilogue_site());
    out_.line("char* scratch, i32* status) {{\nlet_next_start();\nwait_for_previous();\n");
    out_.declare_symbols();
    out_.line("const Operands x = {{x0, x1, {}, {}, {}{}}};\n", out_.scope.text(shape_.columns),
              out_.scope.text(input[2]), out_.scope.text(input[3]), out_.symbol_fields());
    out_.line("const bool aligned = is_aligned(x0) && is_aligned(x1);\n");
    out_.line(
        "const idx chunks = x.columns / 8, height = {}, width = {}, blocks = (width + kAcross - 1) / "
        "kAcross;\n",
        out_.scope.text(node_.results[0]->type.shape[2]), out_.scope.text(width_));
    out_.line("constexpr int kAtOnce = 1, kLoads = kAtOnce;\n");
    write_epilogue_functions(epilogue_site());
    out_.line("const idx items = {} * blocks * chunks;\n", out_.scope.text(lines_));
    out_.line(
        "for (idx item = (idx)blockIdx.x * {0} + threadIdx.x; item < items; item += (idx)gridDim.x * {0}) "
        "{{\n",
        kBlockThreads);
    out_.line(
        "const idx column = item % chunks * 8, line = item / chunks / blocks, first = item / chunks % blocks "
        "* kAcross;\n");
    out_.line("f32 sums[kAcross][8] = {{}};\n");
    for (const char* way : {"if (aligned) sum_windows<true>", "else sum_windows<false>"})
      out_.line(
          "{}(sums, line / height, line % height * kStrideY - kPaddingY, first * kStrideX - kPaddingX, "
          "column, x);\n",
          way);
    out_.line("#pragma unroll\nfor (int a = 0; a < kAcross; ++a) {{\n");
    out_.line(
        "if (first + a >= width) break;\nconst idx row = line * width + first + a;\nload_eight(0, row, "
        "column, Checked());\n"
        "finish_eight(0, row, column, sums[a], Checked(), true);\n}}\n}}\n}}\n");
  }

  EpilogueSite epilogue_site() { return {node_, shape_, epilogue_, norms_, kEight, out_}; }

  const Node& node_;
  const RowNorms norms_;  // none
  const ops::Convolution attributes_;
  const loops::Kernel epilogue_;
  const ProductShape shape_;
  TemplateText out_;
  Dim lines_, width_, chunks_;
  int across_ = 8;
};

}  // namespace

Layout depthwise_weight_layout() {
  constexpr int kChannelLast[] = {1, 2, 3, 0};
  return Layout::permutation(kChannelLast);
}

bool is_depthwise(const Node& node) {
  if (node.op != &ops::convolution || node.results.empty() || node.results[0]->type.rank() != 4) return false;
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1), &result = node.results[0]->type;
  const auto channels = x.shape[1].constant();
  const auto taps_y = weight.shape[2].constant(), taps_x = weight.shape[3].constant();
  if (!has_tensor_cores(x.dtype) || !channels || !taps_y || !taps_x || *taps_y * *taps_x < kFewestTaps ||
      *taps_y * *taps_x > kMostTaps || *taps_x > kMostAcross)
    return false;
  if (span_of(node, 1) > kLongestSpan) return false;
  return node.attributes<ops::Convolution>().groups == *channels && result.shape[1] == x.shape[1] &&
         *channels % kChannels == 0 && x.layout == Layout::permutation(channels_last(4)) &&
         weight.layout == depthwise_weight_layout() &&
         storage_elements(result.layout, result.shape) == product(result.shape);
}

TemplateKernel write_depthwise(const Node& convolution, const SymbolTable& symbols,
                               const loops::Kernel& epilogue, bool exact_functions) {
  return DepthwiseWriter(convolution, symbols, expand_functions(epilogue, exact_functions)).write();
}

}  // namespace ingot::core::cuda
