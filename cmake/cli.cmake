# SPDX-License-Identifier: Apache-2.0
# The command-line program. Its objects know the libraries' headers only: what they link is exported for them
# (libraries.cmake), which has to be known before the libraries are made.
file(GLOB_RECURSE INGOT_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.cpp)
list(FILTER INGOT_CLI_SOURCES EXCLUDE REGEX "/${INGOT_OTHER_SYSTEM}/[^/]*$")
if(INGOT_COMPILER)
  list(FILTER INGOT_CLI_SOURCES EXCLUDE REGEX "/cli/without_compiler.cpp$")
else()
  list(FILTER INGOT_CLI_SOURCES EXCLUDE REGEX "/cli/(bisect|build|build_options|export|models|opt|report_page).cpp$")
endif()
find_path(INGOT_MINIZIP_INCLUDE minizip/unzip.h REQUIRED)
find_library(INGOT_MINIZIP_LIBRARY libminizip.a REQUIRED)
find_library(INGOT_ZLIB_LIBRARY NAMES z REQUIRED)
add_library(ingot_src_cli OBJECT ${INGOT_CLI_SOURCES})
ingot_unity(ingot_src_cli)
target_compile_options(ingot_src_cli PRIVATE -O1)  # nothing in it takes time, and its libraries compile slowly
target_link_libraries(ingot_src_cli PRIVATE ingot_options fmt::fmt-header-only CLI11::CLI11 nlohmann_json::nlohmann_json)
target_include_directories(ingot_src_cli SYSTEM PRIVATE ${INGOT_MINIZIP_INCLUDE})
if(WIN32)  # nothing of the library is seen but the C API
  target_sources(ingot_src_cli PRIVATE src/support/error.cpp src/support/text.cpp src/support/windows/full_path.cpp src/support/windows/paths.cpp src/support/windows/text.cpp)
endif()
target_compile_definitions(ingot_src_cli PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
