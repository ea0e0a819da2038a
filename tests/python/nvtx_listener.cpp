// SPDX-License-Identifier: Apache-2.0
// A tool as NVTX loads it (NVTX_INJECTION64_PATH): prints each range that begins, and how many are open at
// exit.
#include <cstdint>
#include <cstdio>

namespace {
int depth = 0;

struct Summary {
  ~Summary() { std::fprintf(stderr, "nvtx: %d ranges are open\n", depth); }
} summary;

int push(const char* name) {
  std::fprintf(stderr, "nvtx: %s\n", name);
  return depth++;
}
int pop() { return --depth; }

// As nvtxTypes.h and nvtxInitDecls.h declare them.
struct Callbacks {
  size_t size;
  int (*functions_of)(int module, void**** table, unsigned* size);
};
constexpr uint32_t kCallbacks = 1;
constexpr int kCore = 1;
enum { kPush = 9, kPop = 11 };
}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(uint32_t)) {
  const auto* callbacks = static_cast<const Callbacks*>(table_of(kCallbacks));
  void*** table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->functions_of(kCore, &table, &size) == 0 || size <= kPop) return 0;
  *table[kPush] = reinterpret_cast<void*>(&push);
  *table[kPop] = reinterpret_cast<void*>(&pop);
  return 1;
}
