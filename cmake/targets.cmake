# Where the sources and the build are, for tests (base/source_dir_for_test.h).
if(MUSTER_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/source_dir.cc @ONLY CONTENT [[
#include "base/source_dir_for_test.h"
std::string muster::SourceDir() { return "@CMAKE_SOURCE_DIR@"; }
std::string muster::BuildDir() { return "@CMAKE_BINARY_DIR@"; }
]])
  add_library(muster_source_dir STATIC ${CMAKE_BINARY_DIR}/source_dir.cc)
  target_include_directories(muster_source_dir PUBLIC ${CMAKE_SOURCE_DIR}/src)
endif()

# muster_groups(out name sources...): the sources, joined to groups of MUSTER_GROUP that are compiled as one, because most of a
# compiler's time goes into headers and what every source instantiates of them. 0 compiles each source alone, and so are those of
# cmake/alone.txt in any case.
file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/alone.txt MUSTER_ALONE REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/alone.txt)
list(TRANSFORM MUSTER_ALONE PREPEND ${CMAKE_SOURCE_DIR}/)
function(muster_groups out name)
  set(sources ${ARGN})
  list(LENGTH sources count)
  if(MUSTER_GROUP LESS 2 OR count LESS 2)
    set(${out} ${sources} PARENT_SCOPE)
    return()
  endif()
  # Groups of one size: 9 sources in groups of 8 are 5 and 4.
  math(EXPR groups "(${count} + ${MUSTER_GROUP} - 1) / ${MUSTER_GROUP}")
  math(EXPR size "(${count} + ${groups} - 1) / ${groups}")
  math(EXPR last "${groups} - 1")
  set(files "")
  foreach(number RANGE ${last})
    math(EXPR begin "${number} * ${size}")
    list(SUBLIST sources ${begin} ${size} group)
    set(alone ${group})
    list(REMOVE_ITEM group ${MUSTER_ALONE})
    list(REMOVE_ITEM alone ${group})
    list(APPEND files ${alone})
    # Paths from the source directory, so that clones share what ccache keeps.
    list(TRANSFORM group REPLACE "^${CMAKE_SOURCE_DIR}/(src/)?(.*)$" "#include \"\\2\"")
    list(JOIN group "\n" text)
    set(file ${CMAKE_BINARY_DIR}/groups/${name}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}\n" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# muster_library(folder DEPS ... [SHELL] [SHARDS n] [COST seconds]): the library muster_<folder> from src/<folder>/*.cc and, when
# tests are built, the program <folder>_test from its *_test.cc, with SHARDS and COST as muster_test has them. Slashes in the
# folder become underscores. SHELL is for what waits for others most of its time: the tests' build compiles it with -O1.
function(muster_library folder)
  cmake_parse_arguments(ARG "SHELL" "SHARDS;COST" "DEPS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main|/counted_new)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    muster_groups(grouped ${name} ${sources})
    add_library(muster_${name} STATIC ${grouped})
    target_include_directories(muster_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(muster_${name} PUBLIC ${ARG_DEPS})
    if(ARG_SHELL)
      target_compile_options(muster_${name} PRIVATE $<$<CONFIG:Debug>:-O1>)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    target_include_directories(muster_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(muster_${name} INTERFACE ${ARG_DEPS})
  endif()

  if(MUSTER_TESTS AND tests)
    muster_test(${name}_test SOURCES ${tests} DEPS muster_${name} SHARDS ${ARG_SHARDS} COST ${ARG_COST})
  endif()
endfunction()

# muster_test(name SOURCES ... DEPS ... [SHARDS n] [APART pattern] [COST seconds] [LABELS ...] [RUNS_MUSTER]): a GoogleTest
# program, registered with ctest as one test, or as n that share its test cases, or as two: `name`, and `name_apart` with the cases
# that match the pattern. Costly programs start first. RUNS_MUSTER is for a test of the built program, which it finds in MUSTER.
# Its test cases are listed one by one too: see single_tests.cmake.
function(muster_test name)
  cmake_parse_arguments(ARG "RUNS_MUSTER" "SHARDS;APART;COST" "SOURCES;DEPS;LABELS" ${ARGN})
  list(TRANSFORM ARG_SOURCES REPLACE "^([^/].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  muster_groups(grouped ${name} ${ARG_SOURCES})
  add_executable(${name} ${grouped})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} muster_source_dir GTest::gtest GTest::gtest_main rapidcheck)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  # A third less of the compiler's time than -O2, and nearly all of a test's time goes into the libraries; but for searches.
  if(NOT "search" IN_LIST ARG_LABELS)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O1>)
  endif()
  if(ARG_RUNS_MUSTER)
    add_dependencies(${name} muster)
    set(environment MUSTER=$<TARGET_FILE:muster>)
  endif()

  if(ARG_SHARDS)
    set(tests "")
    foreach(shard RANGE 1 ${ARG_SHARDS})
      add_test(NAME ${name}_${shard} COMMAND ${CMAKE_SOURCE_DIR}/tools/run_shard ${shard} ${ARG_SHARDS} $<TARGET_FILE:${name}>)
      list(APPEND tests ${name}_${shard})
    endforeach()
  elseif(ARG_APART)
    add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tools/run_apart rest ${ARG_APART} $<TARGET_FILE:${name}>)
    add_test(NAME ${name}_apart COMMAND ${CMAKE_SOURCE_DIR}/tools/run_apart apart ${ARG_APART} $<TARGET_FILE:${name}>)
    set(tests ${name} ${name}_apart)
  else()
    add_test(NAME ${name} COMMAND ${name})
    set(tests ${name})
  endif()
  if(ARG_COST)
    set_tests_properties(${tests} PROPERTIES COST ${ARG_COST})
  endif()
  set_tests_properties(${tests} PROPERTIES LABELS "${ARG_LABELS}" ENVIRONMENT "${environment}")

  muster_single_tests(${name} "${environment}" "${ARG_LABELS}")
  list(TRANSFORM ARG_SOURCES REPLACE "^${CMAKE_SOURCE_DIR}/" "")
  string(JOIN " " line ${name} ${ARG_SOURCES})
  set_property(GLOBAL APPEND_STRING PROPERTY MUSTER_TEST_PROGRAMS "${line}\n")
endfunction()

# muster_tool_test(name [LABELS ...] [DEPENDS targets] COMMAND ...): any other test.
function(muster_tool_test name)
  cmake_parse_arguments(ARG "" "" "LABELS;DEPENDS;COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  string(JOIN " " line ${name} ${ARG_DEPENDS})
  set_property(GLOBAL APPEND_STRING PROPERTY MUSTER_TOOL_TESTS "${line}\n")
endfunction()

# muster_test_index(): writes what tools/find_tests reads: the programs with their sources, and the other tests with the
# targets they need.
function(muster_test_index)
  get_property(programs GLOBAL PROPERTY MUSTER_TEST_PROGRAMS)
  get_property(tools GLOBAL PROPERTY MUSTER_TOOL_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_programs.txt CONTENT "${programs}" @ONLY)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tool_tests.txt CONTENT "${tools}" @ONLY)
endfunction()
