# SPDX-License-Identifier: Apache-2.0
# Compiler options that hold for everything we build: the interface target ingot_options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

if(INGOT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(INGOT_CCACHE_PROGRAM ccache)
  if(INGOT_CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${INGOT_CCACHE_PROGRAM})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${INGOT_CCACHE_PROGRAM})
  endif()
endif()

# Several files of a target become one translation unit: names in anonymous namespaces differ throughout a folder.
function(ingot_unity target)
  set_target_properties(
    ${target} PROPERTIES UNITY_BUILD ${INGOT_UNITY} UNITY_BUILD_BATCH_SIZE 8 UNITY_BUILD_RELOCATABLE ON
  )
  if(INGOT_UNITY)
    # A file that is included is taken for a header; and what is inlined into more misleads GCC 12 about variants.
    target_compile_options(
      ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage;-Wno-maybe-uninitialized>"
    )
  endif()
endfunction()

add_library(ingot_options INTERFACE)
target_include_directories(
  ingot_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/generated
)
target_compile_options(ingot_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -ffunction-sections -fdata-sections)
if(INGOT_WERROR)
  target_compile_options(ingot_options INTERFACE -Werror)
endif()
if(INGOT_SANITIZE)
  # Null and alignment checks stay on; recovery is off, so that a finding fails its test.
  add_compile_options(-fsanitize=${INGOT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${INGOT_SANITIZE})
endif()
