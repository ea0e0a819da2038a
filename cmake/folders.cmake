# SPDX-License-Identifier: Apache-2.0
# Each folder of src/ is one object library; two shared libraries are made of them (libraries.cmake).
define_property(GLOBAL PROPERTY INGOT_RUNTIME_FOLDERS)
define_property(GLOBAL PROPERTY INGOT_COMPILER_FOLDERS)
define_property(GLOBAL PROPERTY INGOT_DECLARED_FOLDERS)

if(WIN32)
  set(INGOT_OTHER_SYSTEM posix)
else()
  set(INGOT_OTHER_SYSTEM windows)
endif()

# ingot_folder(PATH LIBRARY runtime|compiler [LINK targets...]): PATH is below src/. A folder without sources is skipped.
function(ingot_folder path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "LINK")
  set_property(GLOBAL APPEND PROPERTY INGOT_DECLARED_FOLDERS ${path})
  if(arg_LIBRARY STREQUAL compiler AND NOT INGOT_COMPILER)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${INGOT_OTHER_SYSTEM}/[^/]*$")  # what differs between systems is in folders of theirs
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${path})
  set(alone ${sources})
  list(FILTER alone INCLUDE REGEX "/(xxh3_|sha256_blocks)")  # they choose a processor for all that follows
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(ingot_src_${name} OBJECT ${sources})
  ingot_unity(ingot_src_${name})
  target_link_libraries(ingot_src_${name} PRIVATE ingot_options fmt::fmt-header-only ${arg_LINK})
  target_include_directories(ingot_src_${name} SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE} ${INGOT_SODIUM_INCLUDE}
                             ${INGOT_HIREDIS_INCLUDE} ${INGOT_CURL_INCLUDE})
  add_dependencies(ingot_src_${name} ingot_schemas)
  if(WIN32)
    target_compile_definitions(ingot_src_${name} PRIVATE INGOT_BUILDS_LIBRARY)  # what has INGOT_API is exported
  endif()
  string(TOUPPER ${arg_LIBRARY} library)
  set_property(GLOBAL APPEND PROPERTY INGOT_${library}_FOLDERS ingot_src_${name})
endfunction()

# Fails when a source file below src/ belongs to no declared folder: it would silently be left out.
function(ingot_check_folders)
  get_property(folders GLOBAL PROPERTY INGOT_DECLARED_FOLDERS)
  list(APPEND folders cli backends/cpu/compile)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/*.cpp)
  foreach(folder IN LISTS folders)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  if(sources)
    message(FATAL_ERROR "These files of src/ are in no folder that CMakeLists.txt declares: ${sources}")
  endif()
endfunction()
