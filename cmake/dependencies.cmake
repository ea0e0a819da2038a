# SPDX-License-Identifier: Apache-2.0
# Third parties. What ends in the runtime library is header-only, or small and linked statically.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING)
  include(cross_headers)
else()
  find_package(fmt CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
  find_package(CLI11 CONFIG REQUIRED)
endif()
find_program(INGOT_FLATC flatc REQUIRED)
find_path(INGOT_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_path(INGOT_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(INGOT_EIGEN_INCLUDE unsupported/Eigen/MatrixFunctions PATH_SUFFIXES eigen3 REQUIRED)
add_library(ingot_eigen INTERFACE)
target_include_directories(ingot_eigen SYSTEM INTERFACE ${INGOT_EIGEN_INCLUDE})

# Ranges for tools that watch GPUs: a header alone, of a CUDA toolkit or of the Python package nvidia-nvtx. Without it
# there are no ranges.
if(NOT WIN32)
  file(GLOB folders ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/include /usr/local/cuda*/include)
  find_path(INGOT_NVTX_INCLUDE nvtx3/nvToolsExt.h PATHS ${folders})
  if(INGOT_NVTX_INCLUDE)
    add_library(ingot_nvtx INTERFACE)
    target_include_directories(ingot_nvtx SYSTEM INTERFACE ${INGOT_NVTX_INCLUDE})
    target_compile_definitions(ingot_nvtx INTERFACE INGOT_HAS_NVTX=1)
    set(INGOT_NVTX ingot_nvtx)
  endif()
endif()

find_path(INGOT_SODIUM_INCLUDE sodium.h REQUIRED)
find_library(INGOT_SODIUM_LIBRARY libsodium.a REQUIRED)
find_path(INGOT_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(INGOT_ZSTD_LIBRARY libzstd.a REQUIRED)
if(INGOT_COMPILER)
  find_path(INGOT_HIREDIS_INCLUDE hiredis/hiredis.h REQUIRED)
  find_library(INGOT_HIREDIS_LIBRARY libhiredis.a REQUIRED)
  find_path(INGOT_CURL_INCLUDE curl/curl.h REQUIRED)  # the library is opened at run time
  find_path(INGOT_MUSTACHE_INCLUDE kainjow/mustache.hpp REQUIRED)
  add_library(ingot_mustache INTERFACE)
  target_include_directories(ingot_mustache SYSTEM INTERFACE ${INGOT_MUSTACHE_INCLUDE})
endif()

if(INGOT_LLVM)
  find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
  llvm_map_components_to_libnames(
    INGOT_LLVM_LIBRARIES
    core instcombine scalaropts transformutils analysis object target
    x86codegen x86desc x86info
    aarch64codegen aarch64desc aarch64info
  )
  # Not every machine that runs wheels has libzstd, which LLVM asks for.
  get_target_property(llvm_support_links LLVMSupport INTERFACE_LINK_LIBRARIES)
  if(TARGET zstd::libzstd_static)
    list(TRANSFORM llvm_support_links REPLACE "zstd::libzstd_shared" "zstd::libzstd_static")
    set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${llvm_support_links}")
  endif()
  add_library(ingot_llvm INTERFACE)
  target_include_directories(ingot_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  separate_arguments(INGOT_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(ingot_llvm INTERFACE ${INGOT_LLVM_DEFINITIONS})
  target_link_libraries(ingot_llvm INTERFACE ${INGOT_LLVM_LIBRARIES})
endif()

# src/engine/NAME.fbs becomes the header engine/NAME_generated.h in the build folder.
add_library(ingot_flatbuffers INTERFACE)
target_include_directories(ingot_flatbuffers SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/generated ${INGOT_FLATBUFFERS_INCLUDE})
file(GLOB INGOT_SCHEMAS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/engine/*.fbs)
foreach(schema IN LISTS INGOT_SCHEMAS)
  cmake_path(GET schema STEM name)
  set(header ${CMAKE_BINARY_DIR}/generated/engine/${name}_generated.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${INGOT_FLATC} --cpp --cpp-std c++17 --scoped-enums --gen-mutable -o ${CMAKE_BINARY_DIR}/generated/engine ${schema}
    DEPENDS ${schema}
    VERBATIM
  )
  list(APPEND INGOT_SCHEMA_HEADERS ${header})
endforeach()
add_custom_target(ingot_schemas DEPENDS ${INGOT_SCHEMA_HEADERS})
