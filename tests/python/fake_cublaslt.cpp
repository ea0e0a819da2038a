// SPDX-License-Identifier: Apache-2.0
// Stands for cuBLASLt where there is no GPU: ranks four algorithms, of which the second adds up in place, and
// tells which one multiplies. Its version is $FAKE_CUBLASLT_VERSION; it does not start if there is
// $FAKE_CUBLASLT_FAILS.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

struct Algorithm {
  uint64_t words[8];
};
struct Ranked {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
constexpr int kRanked = 4, kInPlace = 1, kReductionScheme = 3;
int object = 0;

}  // namespace

extern "C" {

size_t cublasLtGetVersion() {
  const char* version = std::getenv("FAKE_CUBLASLT_VERSION");
  return version != nullptr ? std::strtoul(version, nullptr, 10) : 130100;
}
int cublasLtCreate(void** handle) {
  constexpr int kNotInitialized = 1;
  return *handle = &object, std::getenv("FAKE_CUBLASLT_FAILS") != nullptr ? kNotInitialized : 0;
}
const char* cublasLtGetStatusName(int) { return "a fake error"; }
int cublasLtMatrixLayoutCreate(void** matrix, int, uint64_t, uint64_t, int64_t) {
  return *matrix = &object, 0;
}
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatrixLayoutDestroy(void*) { return 0; }
int cublasLtMatmulDescCreate(void** product, int, int) { return *product = &object, 0; }
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulDescDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceCreate(void** wish) { return *wish = &object, 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }

int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int most, Ranked* ranked,
                                   int* count) {
  for (*count = 0; *count < most && *count < kRanked; ++*count)
    ranked[*count] = {.algorithm = {{static_cast<uint64_t>(*count)}},
                      .workspace_bytes = 0,
                      .status = 0,
                      .waves = 1,
                      .reserved = {}};
  return 0;
}

int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value, size_t bytes,
                                         size_t* written) {
  if (attribute != kReductionScheme || bytes != sizeof(uint32_t)) return 1;
  *static_cast<uint32_t*>(value) = algorithm->words[0] == 1 ? kInPlace : 0;
  *written = bytes;
  return 0;
}

int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const Algorithm* algorithm, void*, size_t, void*) {
  std::fprintf(stderr, "cublaslt: algorithm %d\n", static_cast<int>(algorithm->words[0]));
  return 0;
}
}
