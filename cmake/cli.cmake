# SPDX-License-Identifier: Apache-2.0
# The command-line program. Its objects know the libraries' headers only: what they link is exported for them
# (libraries.cmake), which has to be known before the libraries are made.
file(GLOB_RECURSE INGOT_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.cpp)
find_package(CLI11 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(minizip REQUIRED minizip)
add_library(ingot_src_cli OBJECT ${INGOT_CLI_SOURCES})
ingot_unity(ingot_src_cli)
target_compile_options(ingot_src_cli PRIVATE -O1)  # nothing in it takes time, and its libraries compile slowly
target_link_libraries(ingot_src_cli PRIVATE ingot_options fmt::fmt-header-only CLI11::CLI11 nlohmann_json::nlohmann_json)
target_compile_definitions(ingot_src_cli PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
