# SPDX-License-Identifier: Apache-2.0
# The sources that decide what is made of a key, as one digest, which is part of the key: the header FOLDER/fingerprint.h
# in the build folder, for the target of that folder.
function(ingot_fingerprint folder namespace)
  string(REPLACE "/" "_" name ${folder})
  if(NOT TARGET ingot_src_${name})
    return()
  endif()
  set(patterns "")
  foreach(source IN LISTS ARGN)
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${source}/*.cpp ${CMAKE_SOURCE_DIR}/src/${source}/*.h
         ${CMAKE_SOURCE_DIR}/src/${source}/*.def ${CMAKE_SOURCE_DIR}/src/${source}/*.fbs
    )
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  list(SORT sources)
  set(header ${CMAKE_BINARY_DIR}/generated/${folder}/fingerprint.h)
  set(list ${CMAKE_BINARY_DIR}/generated/${folder}/fingerprint_sources.txt)
  file(GENERATE OUTPUT ${list} CONTENT "$<JOIN:${sources},\n>\n")
  set(script ${CMAKE_SOURCE_DIR}/cmake/write_fingerprint.cmake)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${list} -D ROOT=${CMAKE_SOURCE_DIR} -D NAMESPACE=${namespace} -D OUTPUT=${header}
            -P ${script}
    DEPENDS ${sources} ${list} ${script}
    VERBATIM
  )
  add_custom_target(ingot_fingerprint_${name} DEPENDS ${header})
  add_dependencies(ingot_src_${name} ingot_fingerprint_${name})
endfunction()

# Of kernels, whose keys are Loop IR or types.
foreach(backend cpu cuda)
  ingot_fingerprint(backends/${backend}/compile ingot::core::${backend} backends/${backend} loops types)
endforeach()
# Of engines: all that a build goes through after the import.
ingot_fingerprint(
  compiler ingot::core backends compiler engine evaluate importers/aten ir loops ops partition passes plan types
)
