# SPDX-License-Identifier: Apache-2.0
# What the archive for Windows holds: `cmake --install build/windows --prefix FOLDER`. It can be anywhere.
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/ingot/*.h)
list(FILTER headers EXCLUDE REGEX "/(build|compile).h$")  # of the compiler
install(FILES ${headers} DESTINATION include/ingot)
install(TARGETS ingot_runtime RUNTIME DESTINATION bin ARCHIVE DESTINATION lib)
if(TARGET ingot_cli)
  install(TARGETS ingot_cli RUNTIME DESTINATION bin)
endif()

# The import library of Microsoft's linker, beside the one of mingw-w64, which CMake makes.
find_program(INGOT_DLLTOOL NAMES llvm-dlltool-19 llvm-dlltool HINTS /usr/lib/llvm-19/bin REQUIRED NO_CMAKE_FIND_ROOT_PATH)
set(import_library ${CMAKE_BINARY_DIR}/lib/ingot_runtime.lib)
add_custom_command(
  OUTPUT ${import_library}
  COMMAND ${INGOT_DLLTOOL} -m i386:x86-64 -D ingot_runtime.dll -d ${INGOT_DEFINITIONS} -l ${import_library}
  DEPENDS ingot_runtime
  VERBATIM
)
add_custom_target(ingot_import_library ALL DEPENDS ${import_library})
install(FILES ${INGOT_DEFINITIONS} ${import_library} DESTINATION lib)

install(FILES LICENSE docs/windows.md DESTINATION .)
install(DIRECTORY ${INGOT_WINDOWS_LIBRARIES}/licences/ DESTINATION licences)
install(DIRECTORY examples/c examples/cpp DESTINATION examples)
