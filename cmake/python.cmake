# SPDX-License-Identifier: Apache-2.0
# python/bindings/ becomes the module ingot._core.
file(GLOB_RECURSE INGOT_BINDINGS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/bindings/*.cpp)
if(NOT INGOT_BINDINGS)
  return()
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE
  OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY
)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(ingot_core STABLE_ABI NB_DOMAIN ingot NOMINSIZE ${INGOT_BINDINGS})
ingot_unity(ingot_core)
set_target_properties(ingot_core PROPERTIES OUTPUT_NAME _core INSTALL_RPATH $ORIGIN)
target_link_libraries(ingot_core PRIVATE ingot_options ingot)
target_include_directories(ingot_core SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE})
set(exports ${CMAKE_SOURCE_DIR}/cmake/module_exports.map)
target_link_options(ingot_core PRIVATE -Wl,--version-script=${exports})
set_property(TARGET ingot_core APPEND PROPERTY LINK_DEPENDS ${exports})
target_compile_definitions(ingot_core PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
