# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/NAME_fuzzer.cpp, with what the folder tests/fuzz/NAME holds, becomes the libFuzzer program NAME_fuzzer; all
# our code is instrumented for it. make_seeds writes right inputs to begin with.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "INGOT_FUZZ needs clang: use the preset `fuzz`")
endif()

function(ingot_fuzz_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ingot_options ingot_inside fmt::fmt-header-only nlohmann_json::nlohmann_json)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(${name} SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE})
  target_compile_definitions(${name} PRIVATE INGOT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${name} ingot_schemas)
endfunction()

set(INGOT_FUZZ_ARCHIVES ${CMAKE_SOURCE_DIR}/tests/importers/pt2_archives.cpp
                        ${CMAKE_SOURCE_DIR}/tests/importers/aten/random_calls.cpp
                        ${CMAKE_SOURCE_DIR}/tests/importers/aten/programs.cpp
                        ${CMAKE_SOURCE_DIR}/tests/importers/onnx_models.cpp
)
file(GLOB INGOT_FUZZERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzzer.cpp)
foreach(source IN LISTS INGOT_FUZZERS)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_fuzzer$" "" folder ${name})
  file(GLOB helpers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/${folder}/*.cpp)
  ingot_fuzz_program(${name} ${source} ${helpers})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
target_sources(pt2_fuzzer PRIVATE ${INGOT_FUZZ_ARCHIVES})
target_sources(onnx_fuzzer PRIVATE ${CMAKE_SOURCE_DIR}/tests/importers/onnx_messages.cpp)

file(GLOB seed_helpers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*/*.cpp)
ingot_fuzz_program(make_seeds ${CMAKE_SOURCE_DIR}/tests/fuzz/make_seeds.cpp ${seed_helpers} ${INGOT_FUZZ_ARCHIVES})
