# SPDX-License-Identifier: Apache-2.0
# What is installed, by component: "runtime" opens and runs engines, "compiler" also builds them and needs "runtime" beside
# it; "python" is what a wheel holds.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)
configure_package_config_file(
  cmake/ingot-config.cmake.in ${CMAKE_BINARY_DIR}/ingot-config.cmake INSTALL_DESTINATION ${package_folder}
)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ingot-config-version.cmake COMPATIBILITY SameMinorVersion)
# pkg-config: the prefix is told relative to the file's own place, so that the tree can be moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)

# ingot_install_library(TARGET COMPONENT PKG_CONFIG_NAME HEADERS...)
function(ingot_install_library target component pc)
  install(
    TARGETS ${target}
    EXPORT ingot-${component}-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
  )
  install(
    EXPORT ingot-${component}-targets
    NAMESPACE ingot::
    DESTINATION ${package_folder}
    COMPONENT ${component}
  )
  configure_file(cmake/${pc}.pc.in ${CMAKE_BINARY_DIR}/${pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ingot COMPONENT ${component})
endfunction()

file(GLOB runtime_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/ingot/*.h)
set(compiler_headers ${CMAKE_SOURCE_DIR}/include/ingot/build.h ${CMAKE_SOURCE_DIR}/include/ingot/compile.h)
list(REMOVE_ITEM runtime_headers ${compiler_headers})
ingot_install_library(ingot_runtime runtime ingot-runtime ${runtime_headers})
if(TARGET ingot)
  ingot_install_library(ingot compiler ingot ${compiler_headers})
endif()

install(
  FILES ${CMAKE_BINARY_DIR}/ingot-config.cmake ${CMAKE_BINARY_DIR}/ingot-config-version.cmake
  DESTINATION ${package_folder}
  COMPONENT runtime
)
install(
  FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT runtime
)
install(
  DIRECTORY docs/
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  COMPONENT runtime
)
install(
  DIRECTORY examples/c examples/cpp examples/libtorch
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  COMPONENT runtime
)

install( # its users build it, each with their version of torch
  DIRECTORY libtorch
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ingot
  COMPONENT runtime
)

if(TARGET ingot_cli)
  file(RELATIVE_PATH bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
  set(cli_rpath $ORIGIN/${bin_to_lib})
  set(cli_component runtime)
  if(INGOT_COMPILER)
    set(cli_component compiler)
  endif()
  install(TARGETS ingot_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${cli_component})
endif()

if(TARGET ingot_core)
  install(TARGETS ingot_core LIBRARY DESTINATION ingot COMPONENT python EXCLUDE_FROM_ALL)
  # A wheel holds no links: the file is installed under its soname alone.
  install(TARGETS ingot ingot_runtime LIBRARY DESTINATION ingot COMPONENT python EXCLUDE_FROM_ALL NAMELINK_SKIP)
endif()
if(TARGET ingot_core AND TARGET ingot_cli AND DEFINED SKBUILD_SCRIPTS_DIR)
  # In an environment the program lies in bin/, the libraries inside the package. A wheel of the stable ABI serves each
  # Python that pyproject.toml admits.
  set(minors ${Python_VERSION_MINOR})
  if(Python_VERSION_MINOR GREATER_EQUAL 12)
    set(minors 12 13)
  endif()
  foreach(minor IN LISTS minors)
    list(APPEND cli_rpath $ORIGIN/../lib/python3.${minor}/site-packages/ingot)
  endforeach()
  install(TARGETS ingot_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
endif()
if(TARGET ingot_cli)
  set_target_properties(ingot_cli PROPERTIES INSTALL_RPATH "${cli_rpath}")
endif()
