# SPDX-License-Identifier: Apache-2.0
file(GLOB_RECURSE INGOT_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.cpp)
if(NOT INGOT_CLI_SOURCES)
  return()
endif()
find_package(CLI11 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(minizip REQUIRED minizip)
add_executable(ingot_cli ${INGOT_CLI_SOURCES})
set_target_properties(ingot_cli PROPERTIES OUTPUT_NAME ingot BUILD_RPATH_USE_ORIGIN ON)
target_link_libraries(
  ingot_cli PRIVATE ingot_options ingot fmt::fmt-header-only CLI11::CLI11 nlohmann_json::nlohmann_json libminizip.a z
)
target_compile_definitions(ingot_cli PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
