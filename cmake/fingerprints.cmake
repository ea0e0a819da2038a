# SPDX-License-Identifier: Apache-2.0
# The sources that decide what code a backend makes of a kernel's key, as one digest, which is part of every key: the
# header backends/NAME/compile/fingerprint.h in the build folder.
function(ingot_fingerprint backend)
  set(target ingot_src_backends_${backend}_compile)
  if(NOT TARGET ${target})
    return()
  endif()
  set(patterns "")
  foreach(folder backends/${backend}/compile loops types)
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/src/${folder}/*.h)
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns} ${CMAKE_SOURCE_DIR}/src/backends/${backend}/kernel_abi.h)
  list(SORT sources)
  set(header ${CMAKE_BINARY_DIR}/generated/backends/${backend}/compile/fingerprint.h)
  set(list ${CMAKE_BINARY_DIR}/generated/backends/${backend}/compile/fingerprint_sources.txt)
  file(GENERATE OUTPUT ${list} CONTENT "$<JOIN:${sources},\n>\n")
  set(script ${CMAKE_SOURCE_DIR}/cmake/write_fingerprint.cmake)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${list} -D ROOT=${CMAKE_SOURCE_DIR} -D BACKEND=${backend} -D OUTPUT=${header} -P
            ${script}
    DEPENDS ${sources} ${list} ${script}
    VERBATIM
  )
  add_custom_target(ingot_fingerprint_${backend} DEPENDS ${header})
  add_dependencies(${target} ingot_fingerprint_${backend})
endfunction()

ingot_fingerprint(cpu)
ingot_fingerprint(cuda)
