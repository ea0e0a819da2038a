# SPDX-License-Identifier: Apache-2.0
# libingot_runtime opens and runs engines; libingot is the compiler and links it, so that a process has one Host.
function(ingot_shared_library name)
  set(folders ${ARGN})
  set(objects "")
  foreach(folder IN LISTS folders)
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
  endforeach()
  if(NOT objects)
    # Keeps a tree configurable while a library has no sources yet.
    file(WRITE ${CMAKE_BINARY_DIR}/generated/${name}_empty.cpp "")
    set(objects ${CMAKE_BINARY_DIR}/generated/${name}_empty.cpp)
  endif()
  add_library(${name} SHARED ${objects})
  set_target_properties(
    ${name}
    PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR}
               LINKER_LANGUAGE CXX
               INSTALL_RPATH $ORIGIN
               BUILD_RPATH_USE_ORIGIN ON
  )
  target_include_directories(
    ${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  )
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
  if(NOT INGOT_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# Of `library`, made of the object libraries `own`, only the C API is seen, and by our own binaries what the object
# libraries `others` link of it: nothing else can take the place of a function of the application, or give it its own.
function(ingot_limit_exports library own others)
  set(stem ${CMAKE_BINARY_DIR}/generated/${library})
  set(all "")
  foreach(side own others)
    set(objects "")
    foreach(folder IN LISTS ${side})
      list(APPEND objects $<TARGET_OBJECTS:${folder}>)
    endforeach()
    file(GENERATE OUTPUT ${stem}_${side}.txt CONTENT "$<JOIN:${objects},\n>\n")
    list(APPEND all ${objects})
  endforeach()
  set(script ${CMAKE_SOURCE_DIR}/cmake/write_exports.sh)
  add_custom_command(
    OUTPUT ${stem}.map
    COMMAND ${script} ${CMAKE_NM} ${stem}_own.txt ${stem}_others.txt INGOT_PRIVATE_${PROJECT_VERSION} ${stem}.map
    DEPENDS ${script} ${all}
    VERBATIM
  )
  add_custom_target(${library}_exports DEPENDS ${stem}.map)
  add_dependencies(${library}_exports ${own} ${others})
  add_dependencies(${library} ${library}_exports)
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${stem}.map)
  target_link_options(${library} PRIVATE -Wl,--version-script=${stem}.map)
endfunction()

get_property(runtime_folders GLOBAL PROPERTY INGOT_RUNTIME_FOLDERS)
get_property(compiler_folders GLOBAL PROPERTY INGOT_COMPILER_FOLDERS)
ingot_shared_library(ingot_runtime ${runtime_folders})
target_link_libraries(ingot_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS} ${INGOT_SODIUM_LIBRARY} ${INGOT_ZSTD_LIBRARY})
set_target_properties(ingot_runtime PROPERTIES EXPORT_NAME runtime)
add_library(ingot::runtime ALIAS ingot_runtime)

if(INGOT_COMPILER)
  ingot_shared_library(ingot ${compiler_folders})
  target_link_libraries(ingot PUBLIC ingot_runtime PRIVATE ${INGOT_HIREDIS_LIBRARY} ${CMAKE_DL_LIBS})
  if(INGOT_LLVM)
    target_link_libraries(ingot PRIVATE $<BUILD_INTERFACE:ingot_llvm>)
  endif()
  add_library(ingot::ingot ALIAS ingot)
endif()

set(cli_folders "")
if(TARGET ingot_src_cli)
  set(cli_folders ingot_src_cli)
endif()
set(above_runtime ${compiler_folders} ${cli_folders})
if(WIN32)  # where only what has INGOT_API is exported
  set_target_properties(ingot_runtime PROPERTIES PREFIX "" IMPORT_PREFIX "")
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)  # the linker does not
  set(INGOT_DEFINITIONS ${CMAKE_BINARY_DIR}/lib/ingot_runtime.def)
  target_link_options(ingot_runtime PRIVATE -Wl,--output-def,${INGOT_DEFINITIONS})
  target_link_libraries(ingot_runtime PRIVATE synchronization)
else()
  ingot_limit_exports(ingot_runtime "${runtime_folders}" "${above_runtime}")
endif()
if(INGOT_COMPILER)
  ingot_limit_exports(ingot "${compiler_folders}" "${cli_folders}")
endif()

# What looks inside (tests, fuzz targets, benchmarks of kernels) links all of both libraries; it is not installed.
if(INGOT_TESTS OR INGOT_FUZZ OR INGOT_BENCH)
  get_property(tests_folders GLOBAL PROPERTY INGOT_TESTS_FOLDERS)
  set(inside_folders ${runtime_folders} ${compiler_folders} ${tests_folders})
  if(INGOT_LOOKS_INSIDE)
    list(REMOVE_ITEM inside_folders ingot_table_api_runtime ingot_table_api_compiler)
  endif()
  ingot_shared_library(ingot_inside ${inside_folders})
  target_link_libraries(
    ingot_inside PRIVATE Threads::Threads ${CMAKE_DL_LIBS} ${INGOT_SODIUM_LIBRARY} ${INGOT_ZSTD_LIBRARY} ${INGOT_HIREDIS_LIBRARY}
  )
  if(INGOT_LLVM)
    target_link_libraries(ingot_inside PRIVATE ingot_llvm)
  endif()
endif()

# Only the table of linked backends asks whether the CPU compiler is there.
foreach(table ingot_table_api_compiler ingot_table_api_compiler_of_tests)
  if(TARGET ${table})
    target_compile_definitions(${table} PRIVATE INGOT_HAS_LLVM=$<BOOL:${INGOT_LLVM}>)
  endif()
endforeach()
foreach(folder ingot_src_api_runtime ingot_src_api_compiler ingot_src_compiler ingot_src_exporters_onnx ingot_src_report)
  if(TARGET ${folder})
    target_compile_definitions(${folder} PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
  endif()
endforeach()

if(TARGET ingot_src_cli)
  add_executable(ingot_cli $<TARGET_OBJECTS:ingot_src_cli>)
  set_target_properties(ingot_cli PROPERTIES OUTPUT_NAME ingot LINKER_LANGUAGE CXX BUILD_RPATH_USE_ORIGIN ON)
  target_link_libraries(ingot_cli PRIVATE $<IF:$<BOOL:${INGOT_COMPILER}>,ingot,ingot_runtime> ${INGOT_MINIZIP_LIBRARY} ${INGOT_ZLIB_LIBRARY})
endif()
