# SPDX-License-Identifier: Apache-2.0
# Two sets of files: a prefix for C and C++ users (component "ingot"), and what a wheel holds (component "python").
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)
install(
  TARGETS ingot ingot_runtime
  EXPORT ingot-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ingot
)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ingot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ingot)
install(
  EXPORT ingot-targets
  NAMESPACE ingot::
  DESTINATION ${package_folder}
  COMPONENT ingot
)
configure_package_config_file(
  cmake/ingot-config.cmake.in ${CMAKE_BINARY_DIR}/ingot-config.cmake INSTALL_DESTINATION ${package_folder}
)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ingot-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${CMAKE_BINARY_DIR}/ingot-config.cmake ${CMAKE_BINARY_DIR}/ingot-config-version.cmake
  DESTINATION ${package_folder}
  COMPONENT ingot
)

# pkg-config: the prefix is told relative to the file's own place, so that the tree can be moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name ingot ingot-runtime)
  configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ingot)
endforeach()

if(TARGET ingot_cli)
  file(RELATIVE_PATH bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
  set(cli_rpath $ORIGIN/${bin_to_lib})
  install(TARGETS ingot_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ingot)
endif()

if(TARGET ingot_core)
  install(TARGETS ingot_core LIBRARY DESTINATION ingot COMPONENT python EXCLUDE_FROM_ALL)
  # A wheel holds no links: the file is installed under its soname alone.
  install(TARGETS ingot ingot_runtime LIBRARY DESTINATION ingot COMPONENT python EXCLUDE_FROM_ALL NAMELINK_SKIP)
endif()
if(TARGET ingot_core AND TARGET ingot_cli AND DEFINED SKBUILD_SCRIPTS_DIR)
  # In an environment the program lies in bin/, the libraries inside the package.
  set(site lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages)
  list(APPEND cli_rpath $ORIGIN/../${site}/ingot)
  install(TARGETS ingot_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
endif()
if(TARGET ingot_cli)
  set_target_properties(ingot_cli PROPERTIES INSTALL_RPATH "${cli_rpath}")
endif()
