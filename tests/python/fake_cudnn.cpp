// SPDX-License-Identifier: Apache-2.0
// Stands for cuDNN where there is no GPU: graphs of a convolution and functions of elements, which it
// computes on the streams of fake_cuda_driver.cpp, from the dims and strides that it is given. It ranks five
// engines, of which the second is not deterministic, the third has no plan and the fourth wants too large a
// workspace; behind them is one without tensor cores. It tells which one runs. Its version is
// $FAKE_CUDNN_VERSION; it does not start if there is $FAKE_CUDNN_FAILS.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fake_numbers.h"

namespace {

constexpr int kSuccess = 0, kNotInitialized = 1001, kBadParam = 2000, kMisaligned = 2003,
              kNotFinalized = 2004, kShapeMismatch = 2008, kNotSupported = 3000;
enum Kind {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kOperation = 13,
  kGraph = 15,
  kPack = 16,
  kTensor = 17
};
constexpr int kRanked = 5, kNondeterministic = 1, kWithoutPlan = 2, kLarge = 3, kFallback = 9;
thread_local std::string last_error;

int fail(int status, const char* reason) {
  last_error = reason;
  return status;
}

// Never freed, so that the use of one that was destroyed is told.
struct Descriptor {
  int kind;
  bool is_finalized = false, is_destroyed = false;
  int engine = 0;                     // of configurations and engines
  const Descriptor* graph = nullptr;  // of configurations
  std::map<int, std::vector<std::byte>> attributes;

  bool has(int attribute) const { return attributes.count(attribute) > 0; }
  template <typename T>
  std::vector<T> all(int attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T one(int attribute) const {
    const std::vector<T> values = all<T>(attribute);
    return values.size() == 1 ? values[0] : T{};
  }
  const Descriptor& other(int attribute) const {
    const auto* const found = one<const Descriptor*>(attribute);
    if (found == nullptr || found->is_destroyed || !found->is_finalized) {
      std::fprintf(stderr, "cudnn: attribute %d of kind %d is not a descriptor\n", attribute, kind);
      std::abort();
    }
    return *found;
  }
};

struct Handle {
  void* stream = nullptr;
};
Handle handle;

size_t bytes_of(int type) {
  switch (type) {
    case 0:   // handle
    case 3:   // int64
    case 5:   // double
    case 6:   // pointer
    case 15:  // descriptor
      return 8;
    case 2:  // bool
      return 1;
    default:  // float and enumerations
      return 4;
  }
}

// --- tensors ---

int64_t elements(const Descriptor& tensor) {
  int64_t product = 1;
  for (const int64_t dim : tensor.all<int64_t>(902)) product *= dim;
  return product;
}

int64_t offset(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
  return sum;
}

// The index after `index`, in row-major order.
void step(std::vector<int64_t>& index, const std::vector<int64_t>& dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return;
    index[i] = 0;
  }
}

using Values = std::vector<float>;  // row-major

template <typename T>
void read(const Descriptor& tensor, const void* memory, Values& values) {
  const auto dims = tensor.all<int64_t>(902), strides = tensor.all<int64_t>(903);
  std::vector<int64_t> index(dims.size());
  for (float& value : values) {
    value = static_cast<float>(wide(static_cast<const T*>(memory)[offset(index, strides)]));
    step(index, dims);
  }
}
template <typename T>
void write(const Descriptor& tensor, void* memory, const Values& values) {
  const auto dims = tensor.all<int64_t>(902), strides = tensor.all<int64_t>(903);
  std::vector<int64_t> index(dims.size());
  for (const float value : values) {
    static_cast<T*>(memory)[offset(index, strides)] = narrow<T>(value);
    step(index, dims);
  }
}

// What an execution knows: the addresses, and the values so far, by the tensors' numbers.
struct Execution {
  std::map<int64_t, void*> addresses;
  std::map<int64_t, Values> values;

  Values get(const Descriptor& tensor) {
    const auto id = tensor.one<int64_t>(906);
    if (values.count(id) > 0) return values.at(id);
    Values own(static_cast<size_t>(elements(tensor)));
    const void* memory = addresses.at(id);
    const int dtype = tensor.one<int>(901);
    dtype == 2   ? read<Half>(tensor, memory, own)
    : dtype == 9 ? read<Brain>(tensor, memory, own)
                 : read<float>(tensor, memory, own);
    return own;
  }
  void put(const Descriptor& tensor, Values own) {
    const auto id = tensor.one<int64_t>(906);
    const int dtype = tensor.one<int>(901);
    if (tensor.one<uint8_t>(907) == 0) {
      void* memory = addresses.at(id);
      dtype == 2   ? write<Half>(tensor, memory, own)
      : dtype == 9 ? write<Brain>(tensor, memory, own)
                   : write<float>(tensor, memory, own);
    } else if (dtype == 2) {
      for (float& value : own) value = wide(narrow<Half>(value));
    } else if (dtype == 9) {
      for (float& value : own) value = wide(narrow<Brain>(value));
    }
    values[id] = std::move(own);
  }
};

// --- operations ---

struct Window {
  std::vector<int64_t> stride, padding, dilation;
  explicit Window(const Descriptor& convolution)
      : stride(convolution.all<int64_t>(103)),
        padding(convolution.all<int64_t>(105)),
        dilation(convolution.all<int64_t>(102)) {}
};

void convolve(const Descriptor& forward, Execution& execution) {
  const Descriptor &x = forward.other(704), &weight = forward.other(703), &result = forward.other(705);
  const Window window(forward.other(702));
  const auto in = x.all<int64_t>(902), taps = weight.all<int64_t>(902), out = result.all<int64_t>(902);
  const Values a = execution.get(x), b = execution.get(weight);
  Values sums(static_cast<size_t>(elements(result)));
  const int64_t results_of_group = taps[0] / (in[1] / taps[1]);
  std::vector<int64_t> at(out.size()), tap(taps.size()), place(in.size());
  const auto strides_of = [](const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
    return strides;
  };
  const auto a_strides = strides_of(in), b_strides = strides_of(taps);
  const int64_t products = elements(weight) / taps[0];
  for (float& sum : sums) {
    std::fill(tap.begin(), tap.end(), 0);
    tap[0] = at[1];
    for (int64_t i = 0; i < products; ++i) {
      place[0] = at[0];
      place[1] = at[1] / results_of_group * taps[1] + tap[1];
      bool is_inside = true;
      for (size_t dim = 2; dim < in.size(); ++dim) {
        place[dim] =
            at[dim] * window.stride[dim - 2] - window.padding[dim - 2] + tap[dim] * window.dilation[dim - 2];
        is_inside = is_inside && place[dim] >= 0 && place[dim] < in[dim];
      }
      if (is_inside)
        sum +=
            a[static_cast<size_t>(offset(place, a_strides))] * b[static_cast<size_t>(offset(tap, b_strides))];
      step(tap, taps);
    }
    step(at, out);
  }
  execution.put(result, std::move(sums));
}

float apply(const Descriptor& function, float x) {
  const int mode = function.one<int>(0);
  if (mode == 100) {
    const float bound = function.has(4) ? static_cast<float>(function.one<double>(4)) : INFINITY;
    return x < 0 ? 0 : x > bound ? bound : x;
  }
  const float sigmoid = 1 / (1 + std::exp(-x));
  return mode == 101   ? std::tanh(x)
         : mode == 102 ? sigmoid
         : mode == 104 ? x * 0.5f * (1 + std::erf(x * 0.70710678f))
                       : x * sigmoid;
}

void compute_elements(const Descriptor& operation, Execution& execution) {
  const Descriptor &function = operation.other(750), &x = operation.other(751),
                   &result = operation.other(753);
  Values values = execution.get(x);
  if (operation.has(752)) {
    const Descriptor& b = operation.other(752);
    const Values added = execution.get(b);
    const auto dims = x.all<int64_t>(902), own = b.all<int64_t>(902);
    std::vector<int64_t> index(dims.size());
    for (float& value : values) {
      int64_t position = 0;
      for (size_t i = 0; i < dims.size(); ++i) position = position * own[i] + (own[i] == 1 ? 0 : index[i]);
      value += added[static_cast<size_t>(position)];
      step(index, dims);
    }
  } else {
    for (float& value : values) value = apply(function, value);
  }
  execution.put(result, std::move(values));
}

void run(const Descriptor& graph, Execution execution) {
  for (const Descriptor* operation : graph.all<const Descriptor*>(801))
    operation->kind == kForward ? convolve(*operation, execution) : compute_elements(*operation, execution);
}

// As the library does: what is inconsistent is refused when it is finalized.
int check_forward(const Descriptor& forward) {
  const auto in = forward.other(704).all<int64_t>(902), taps = forward.other(703).all<int64_t>(902),
             out = forward.other(705).all<int64_t>(902);
  const Window window(forward.other(702));
  if (window.stride.size() + 2 != in.size() || in.size() < 4) return fail(kBadParam, "dims of the window");
  if (out[0] != in[0] || out[1] != taps[0] || in[1] % taps[1] != 0 || taps[0] % (in[1] / taps[1]) != 0)
    return fail(kShapeMismatch, "channels of the convolution");
  for (size_t dim = 2; dim < in.size(); ++dim) {
    const int64_t reach = window.dilation[dim - 2] * (taps[dim] - 1) + 1;
    if (out[dim] != (in[dim] + 2 * window.padding[dim - 2] - reach) / window.stride[dim - 2] + 1)
      return fail(kShapeMismatch, "extents of the convolution");
  }
  return kSuccess;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() {
  const char* version = std::getenv("FAKE_CUDNN_VERSION");
  return version != nullptr ? std::strtoul(version, nullptr, 10) : 92801;
}
const char* cudnnGetErrorString(int) { return "CUDNN_STATUS_FAKE"; }
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "%s", last_error.c_str());
}
int cudnnCreate(void** created) {
  if (std::getenv("FAKE_CUDNN_FAILS") != nullptr) return fail(kNotInitialized, "it does not start");
  return *created = &handle, kSuccess;
}
int cudnnSetStream(void* own, void* stream) { return static_cast<Handle*>(own)->stream = stream, kSuccess; }
int cudnnBackendCreateDescriptor(int kind, void** created) {
  *created = new Descriptor{.kind = kind, .attributes = {}};
  return kSuccess;
}
int cudnnBackendDestroyDescriptor(void* own) {
  return static_cast<Descriptor*>(own)->is_destroyed = true, kSuccess;
}
int cudnnBackendSetAttribute(void* own, int attribute, int type, int64_t count, const void* values) {
  auto& descriptor = *static_cast<Descriptor*>(own);
  if (descriptor.is_finalized) return fail(kBadParam, "it was finalized");
  const auto* const bytes = static_cast<const std::byte*>(values);
  descriptor.attributes[attribute] = {bytes, bytes + static_cast<size_t>(count) * bytes_of(type)};
  return kSuccess;
}
int cudnnBackendFinalize(void* own) {
  auto& descriptor = *static_cast<Descriptor*>(own);
  if (descriptor.kind == kForward) {
    if (const int status = check_forward(descriptor)) return status;
  }
  if (descriptor.kind == kPlan) {
    const int engine = descriptor.other(401).engine;
    if (engine == kWithoutPlan) return fail(kNotSupported, "there is no such kernel");
    std::fprintf(stderr, "cudnn: a plan of engine %d\n", engine);
  }
  return descriptor.is_finalized = true, kSuccess;
}
int cudnnBackendGetAttribute(void* own, int attribute, int, int64_t most, int64_t* count, void* values) {
  auto& descriptor = *static_cast<Descriptor*>(own);
  if (attribute == 202) {
    const bool is_fallback = descriptor.one<int>(200) == 2;
    *count = is_fallback ? 1 : kRanked;
    for (int64_t i = 0; i < most && i < *count; ++i) {
      Descriptor& config = *static_cast<Descriptor**>(values)[i];
      config.engine = is_fallback ? kFallback : static_cast<int>(i);
      config.graph = &descriptor.other(201);
      config.is_finalized = true;
    }
    return kSuccess;
  }
  if (attribute == 300) {
    static_cast<Descriptor**>(values)[0]->engine = descriptor.engine;
    return *count = 1, kSuccess;
  }
  if (attribute == 402) {
    const auto bytes = descriptor.other(401).engine == kLarge ? int64_t{1} << 40 : int64_t{64};
    std::memcpy(values, &bytes, sizeof(bytes));
    return *count = 1, kSuccess;
  }
  if (attribute != 1303) return fail(kBadParam, "an unknown attribute");
  constexpr int kTensorCoreNote = 0, kNondeterministicNote = 4;
  std::vector<int> notes;
  if (descriptor.engine != kFallback) notes.push_back(kTensorCoreNote);
  if (descriptor.engine == kNondeterministic) notes.push_back(kNondeterministicNote);
  *count = static_cast<int64_t>(notes.size());
  std::memcpy(values, notes.data(), notes.size() * sizeof(int));
  return kSuccess;
}

int cudnnBackendExecute(void* own, void* plan, void* pack) {
  const auto& config = static_cast<Descriptor*>(plan)->other(401);
  const Descriptor& graph = *config.graph;
  const auto& addresses = *static_cast<Descriptor*>(pack);
  if (!addresses.is_finalized) return fail(kNotFinalized, "the addresses");
  if (graph.is_destroyed) return fail(kBadParam, "the graph was destroyed");
  if (addresses.one<void*>(1003) == nullptr) return fail(kBadParam, "there is no workspace");
  Execution execution;
  const auto ids = addresses.all<int64_t>(1000);
  const auto pointers = addresses.all<void*>(1001);
  for (size_t i = 0; i < ids.size(); ++i) execution.addresses[ids[i]] = pointers.at(i);
  const bool is_aligned =
      config.engine == kFallback || std::all_of(pointers.begin(), pointers.end(), [](const void* pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
      });
  if (!is_aligned) return fail(kMisaligned, "tensor cores of unaligned addresses");
  std::fprintf(stderr, "cudnn: engine %d of %zu operations\n", config.engine,
               graph.all<const Descriptor*>(801).size());
  static auto* const enqueue = reinterpret_cast<void (*)(void*, void (*)(void*), void*)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_enqueue"));
  // A graph of the driver runs it again.
  enqueue(
      static_cast<Handle*>(own)->stream, [](void* user) { (*static_cast<std::function<void()>*>(user))(); },
      new std::function<void()>([&graph, execution] { run(graph, execution); }));
  return kSuccess;
}
}
