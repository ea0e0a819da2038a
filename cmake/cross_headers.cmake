# SPDX-License-Identifier: Apache-2.0
# Libraries that are headers alone serve every system. For a cross build they are below CMAKE_FIND_ROOT_PATH too
# (tools/build_cross_libraries.sh links them there): the folder of this system's headers would hide those of the other.
find_path(INGOT_CROSS_HEADERS nlohmann/json.hpp REQUIRED)
foreach(name fmt::fmt-header-only nlohmann_json::nlohmann_json CLI11::CLI11)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} INTERFACE ${INGOT_CROSS_HEADERS})
endforeach()
target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
