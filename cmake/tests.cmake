# SPDX-License-Identifier: Apache-2.0
# One GoogleTest program a folder of tests/: tests/ir/**.cpp (and .c) becomes ingot_test_ir.
find_package(GTest CONFIG REQUIRED)
include(GoogleTest)

# What needs the CPU compiler mirrors its place in src/ and is left out without it.
set(INGOT_LLVM_TESTS "^(backends/cpu/compile|random)/|^compiler/tune_test.cpp$")

# Helpers of other folders that a folder's tests use.
set(INGOT_TEST_HELPERS_backends ops/sample_graph.cpp)
set(INGOT_TEST_HELPERS_cache support/system_crash.cpp)
set(INGOT_TEST_HELPERS_compiler ops/sample_graph.cpp)
set(INGOT_TEST_HELPERS_platforms ops/sample_graph.cpp)
set(INGOT_TEST_HELPERS_runtime support/system_crash.cpp)

# Preloaded by tests/python/test_poison.py: fresh memory full of signalling NaNs. Sanitizers have an allocator of their own.
if(NOT INGOT_SANITIZE)
  add_library(ingot_poison SHARED ${CMAKE_SOURCE_DIR}/tests/tools/poison.c)
  set_target_properties(ingot_poison PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib C_EXTENSIONS ON)
endif()

function(ingot_test_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/tests/${folder}/*.c)
  if(NOT INGOT_LLVM)
    list(FILTER sources EXCLUDE REGEX ${INGOT_LLVM_TESTS})
  endif()
  if(NOT INGOT_COMPILER)
    list(FILTER sources EXCLUDE REGEX "^ranks/collective_test.cpp$")  # of an operator too
  endif()
  list(FILTER sources EXCLUDE REGEX "/driver/")  # programs of their own
  if(INGOT_SANITIZE)
    list(FILTER sources EXCLUDE REGEX "^api/memory_test.cpp$")  # has an allocator of its own, as sanitizers do
  endif()
  if(NOT sources)
    return()
  endif()
  list(APPEND sources ${INGOT_TEST_HELPERS_${folder}} no_disk_cache.cpp)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/tests/)
  set(target ingot_test_${folder})
  add_executable(${target} ${sources})
  ingot_unity(${target})
  target_compile_options(${target} PRIVATE -O1)  # what they test is optimized; they are compiled once and run once
  set_target_properties(${target} PROPERTIES BUILD_RPATH_USE_ORIGIN ON C_STANDARD 11 C_EXTENSIONS OFF)
  target_link_libraries(
    ${target} PRIVATE ingot_options ingot_inside fmt::fmt-header-only nlohmann_json::nlohmann_json GTest::gmock GTest::gtest_main
  )
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE})
  if(folder STREQUAL routines)
    target_include_directories(${target} SYSTEM PRIVATE ${INGOT_EIGEN_INCLUDE})
  endif()
  target_compile_definitions(
    ${target} PRIVATE INGOT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" INGOT_HAS_LLVM=$<BOOL:${INGOT_LLVM}>
  )
  add_dependencies(${target} ingot_schemas)
  if(TARGET ingot_poison)
    add_dependencies(${target} ingot_poison)
  endif()
  if(INGOT_TEST_DISCOVERY)
    gtest_discover_tests(
      ${target} TEST_PREFIX ${folder}. DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES PROPERTIES LABELS cpp TIMEOUT 600
    )
  else()
    add_test(NAME ${folder} COMMAND ${target} --gtest_brief=1)
    set_tests_properties(${folder} PROPERTIES LABELS cpp TIMEOUT 1800)
  endif()
endfunction()

file(GLOB INGOT_TEST_FOLDERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/*)
list(REMOVE_ITEM INGOT_TEST_FOLDERS compatibility fuzz python tools)
if(NOT INGOT_COMPILER)  # those that need the runtime's folders alone
  set(INGOT_TEST_FOLDERS cache engine ranks routines runtime support types)
endif()
foreach(folder IN LISTS INGOT_TEST_FOLDERS)
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/${folder})
    ingot_test_folder(${folder})
  endif()
endforeach()

# ingot_run_on_device runs exported models on the fake device, for tests/python/test_device_models.py.
if(INGOT_COMPILER)
  set(sources backends/device/driver/run_on_device.cpp backends/device/model_check.cpp backends/device/device_run.cpp ops/sample_graph.cpp)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/tests/)
  add_executable(ingot_run_on_device ${sources})
  set_target_properties(ingot_run_on_device PROPERTIES BUILD_RPATH_USE_ORIGIN ON)
  target_link_libraries(
    ingot_run_on_device PRIVATE ingot_options ingot_inside fmt::fmt-header-only nlohmann_json::nlohmann_json GTest::gtest
  )
  target_include_directories(ingot_run_on_device PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(ingot_run_on_device SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE})
  add_dependencies(ingot_run_on_device ingot_schemas)
endif()

# ingot_random_graphs runs the random cases of tests/random for hours. It holds all of Ingot, so that one file can be
# carried to another machine.
if(INGOT_LLVM)
  file(GLOB INGOT_RANDOM_GRAPHS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/random/*.cpp
       ${CMAKE_SOURCE_DIR}/tests/random/driver/*.cpp
  )
  list(FILTER INGOT_RANDOM_GRAPHS EXCLUDE REGEX "_test.cpp$")
  get_property(folders GLOBAL PROPERTY INGOT_RUNTIME_FOLDERS)
  get_property(compiler_folders GLOBAL PROPERTY INGOT_COMPILER_FOLDERS)
  get_property(tests_folders GLOBAL PROPERTY INGOT_TESTS_FOLDERS)
  list(APPEND folders ${compiler_folders} ${tests_folders})
  list(REMOVE_ITEM folders ingot_table_api_runtime ingot_table_api_compiler)
  add_executable(ingot_random_graphs ${INGOT_RANDOM_GRAPHS})
  ingot_unity(ingot_random_graphs)
  foreach(folder IN LISTS folders)
    target_sources(ingot_random_graphs PRIVATE $<TARGET_OBJECTS:${folder}>)
  endforeach()
  target_include_directories(ingot_random_graphs PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(
    ingot_random_graphs PRIVATE ingot_options ingot_llvm fmt::fmt-header-only nlohmann_json::nlohmann_json
                                Threads::Threads ${CMAKE_DL_LIBS} ${INGOT_SODIUM_LIBRARY} ${INGOT_ZSTD_LIBRARY} ${INGOT_HIREDIS_LIBRARY}
  )
  target_link_options(ingot_random_graphs PRIVATE -Wl,--gc-sections)
  add_test(NAME random_graphs_driver COMMAND ingot_random_graphs --count 3 --out ${CMAKE_BINARY_DIR}/random/driver)
  set_tests_properties(random_graphs_driver PROPERTIES LABELS cpp TIMEOUT 600)
endif()

# What was installed works in another place, from CMake and from pkg-config.
if(INGOT_LLVM AND INGOT_CLI)
  add_test(NAME install COMMAND ${CMAKE_SOURCE_DIR}/tests/install/install_test.sh ${CMAKE_BINARY_DIR} ${CMAKE_COMMAND})
  set_tests_properties(install PROPERTIES LABELS install)
endif()
