# Every test case as a ctest test of its own, for people and editors: `ctest -N`, `ctest -R Suite.Name`. They carry the label
# `single` and that of their program. A program's cases are read from the program when ctest starts, and again when it is
# newer than the list. `./dev test` sets MUSTER_PROGRAMS_ONLY: it runs one process per program and lists nothing.

# muster_single_tests(program environment labels)
function(muster_single_tests program environment labels)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/single_tests/${program}.cmake CONTENT "\
set(program \"$<TARGET_FILE:${program}>\")
set(environment \"${environment}\")
set(labels \"single;${program};${labels}\")
include(\"${CMAKE_SOURCE_DIR}/cmake/list_single_tests.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/single_tests/${program}.cmake)
endfunction()
