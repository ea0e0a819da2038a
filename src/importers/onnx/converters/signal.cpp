// SPDX-License-Identifier: Apache-2.0
// Windows of signals: sums of cosines.
#include <array>
#include <numbers>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/tensors.h"

namespace ingot::core::onnx {
namespace {

// a - b cos(2 pi i / N) + c cos(4 pi i / N)
void give_window(Call& call, double a, double b, double c) {
  Graph& graph = call.graph();
  const int64_t size = call.integer(0);
  const std::optional<DType> dtype = dtype_of(call.attribute_integer("output_datatype", 1));
  if (!dtype || size < 0) refuse("a window of this type or size");
  const auto steps = static_cast<double>(call.flag("periodic", true) ? size : size - 1);
  const Term index(graph, converted(graph, counting(graph, size), DType::kF64));
  const Term angle = index * (2 * std::numbers::pi / steps);
  const Term window = a - angle.apply(ops::cos) * b + (angle * 2).apply(ops::cos) * c;
  call.give(window.to(*dtype));
}

void convert_blackman(Call& call) { give_window(call, 0.42, 0.5, 0.08); }
void convert_hamming(Call& call) { give_window(call, 25.0 / 46, 1 - 25.0 / 46, 0); }
void convert_hann(Call& call) { give_window(call, 0.5, 0.5, 0); }

constexpr auto kSignal = std::to_array<Converter>({
    {"BlackmanWindow", convert_blackman, nullptr, 17},
    {"HammingWindow", convert_hamming, nullptr, 17},
    {"HannWindow", convert_hann, nullptr, 17},
});

}  // namespace

std::span<const Converter> signal_converters() { return kSignal; }

}  // namespace ingot::core::onnx
