# SPDX-License-Identifier: Apache-2.0
# Each folder of src/ is one object library; two shared libraries are made of them (libraries.cmake), and a third one
# for tests, with the folders that nobody else gets.
define_property(GLOBAL PROPERTY INGOT_RUNTIME_FOLDERS)
define_property(GLOBAL PROPERTY INGOT_COMPILER_FOLDERS)
define_property(GLOBAL PROPERTY INGOT_TESTS_FOLDERS)
define_property(GLOBAL PROPERTY INGOT_DECLARED_FOLDERS)

if(WIN32)
  set(INGOT_OTHER_SYSTEM posix)
else()
  set(INGOT_OTHER_SYSTEM windows)
endif()

# ingot_objects(TARGET runtime|compiler|tests SOURCES...)
function(ingot_objects target kind)
  add_library(${target} OBJECT ${ARGN})
  ingot_unity(${target})
  target_link_libraries(${target} PRIVATE ingot_options fmt::fmt-header-only)
  target_include_directories(${target} SYSTEM PRIVATE ${INGOT_XXHASH_INCLUDE} ${INGOT_SODIUM_INCLUDE}
                             ${INGOT_HIREDIS_INCLUDE} ${INGOT_CURL_INCLUDE})
  add_dependencies(${target} ingot_schemas)
  if(WIN32)
    target_compile_definitions(${target} PRIVATE INGOT_BUILDS_LIBRARY)  # what has INGOT_API is exported
  endif()
  string(TOUPPER ${kind} library)
  set_property(GLOBAL APPEND PROPERTY INGOT_${library}_FOLDERS ${target})
endfunction()

# Everything that the libraries of users have, and more.
set(INGOT_LOOKS_INSIDE OFF)
if(INGOT_COMPILER AND NOT WIN32 AND (INGOT_TESTS OR INGOT_FUZZ OR INGOT_BENCH))
  set(INGOT_LOOKS_INSIDE ON)
endif()

# ingot_folder(PATH LIBRARY runtime|compiler|tests [LINK targets...] [TABLE file]): PATH is below src/. A folder without
# sources is skipped. TABLE names a file with the backends that are linked: it is compiled again for the tests, which
# have one more.
function(ingot_folder path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY;TABLE" "LINK")
  set_property(GLOBAL APPEND PROPERTY INGOT_DECLARED_FOLDERS ${path})
  if(arg_LIBRARY STREQUAL compiler AND NOT INGOT_COMPILER)
    return()
  endif()
  if(arg_LIBRARY STREQUAL tests AND NOT INGOT_LOOKS_INSIDE)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${INGOT_OTHER_SYSTEM}/[^/]*$")  # what differs between systems is in folders of theirs
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${path})
  if(arg_TABLE)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/src/${path}/${arg_TABLE})
    ingot_objects(ingot_table_${name} ${arg_LIBRARY} ${CMAKE_SOURCE_DIR}/src/${path}/${arg_TABLE})
    if(INGOT_LOOKS_INSIDE)
      ingot_objects(ingot_table_${name}_of_tests tests ${CMAKE_SOURCE_DIR}/src/${path}/${arg_TABLE})
      target_compile_definitions(ingot_table_${name}_of_tests PRIVATE INGOT_HAS_FAKE_DEVICE=1)
    endif()
  endif()
  set(alone ${sources})
  list(FILTER alone INCLUDE REGEX "/(xxh3_|sha256_blocks)")  # they choose a processor for all that follows
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  ingot_objects(ingot_src_${name} ${arg_LIBRARY} ${sources})
  target_link_libraries(ingot_src_${name} PRIVATE ${arg_LINK})
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
