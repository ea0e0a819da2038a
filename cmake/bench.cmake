# SPDX-License-Identifier: Apache-2.0
# bench/NAME.cpp becomes the Google Benchmark program bench_NAME.
find_package(benchmark CONFIG REQUIRED)
file(GLOB INGOT_BENCHMARKS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*.cpp)
foreach(source IN LISTS INGOT_BENCHMARKS)
  cmake_path(GET source STEM name)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE ingot_options ingot fmt::fmt-header-only benchmark::benchmark)
endforeach()

# Single kernels against the machine's roof: they look inside.
if(INGOT_LLVM)
  file(GLOB INGOT_KERNEL_BENCHMARK CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/kernels/*.cpp)
  add_executable(bench_kernels ${INGOT_KERNEL_BENCHMARK})
  target_include_directories(bench_kernels PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(bench_kernels PRIVATE ingot_options ingot fmt::fmt-header-only)
endif()
