# SPDX-License-Identifier: Apache-2.0
# Single kernels against the machine's roof: they look inside.
if(INGOT_LLVM)
  file(GLOB INGOT_KERNEL_BENCHMARK CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/kernels/*.cpp)
  add_executable(bench_kernels ${INGOT_KERNEL_BENCHMARK})
  target_include_directories(bench_kernels PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(bench_kernels PRIVATE ingot_options ingot_inside fmt::fmt-header-only)
endif()
