# Language, warnings and build flavours, the same for every target.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror
                    -Wno-missing-field-initializers)  # designated initialisers name what differs from the default
# Debug is what the tests run on: optimised, because the searches are long, with the library's assertions on.
set(CMAKE_CXX_FLAGS_DEBUG "-O2 -g1 -D_GLIBCXX_ASSERTIONS")
# Release is what strangers send bytes to. The compiler's default is position-independent already.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
-fstack-clash-protection -fcf-protection")
set(CMAKE_EXE_LINKER_FLAGS_RELEASE "-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack")
# Quick is for work: soon compiled, and every variable is there in gdb.
set(CMAKE_CXX_FLAGS_QUICK "-O0 -g -D_GLIBCXX_ASSERTIONS")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of g++ 12 inside the standard library at -O2.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-dangling-pointer -Wno-stringop-overflow
                      -Wno-array-bounds)
  # g++ collects garbage only once it holds half a gigabyte: a fourteenth of the time of a large file.
  add_compile_options("SHELL:--param ggc-min-heapsize=524288")
else()
  # clang counts a kTypeName that only a `requires` mentions as unused, and blames every user of std::stable_sort for the
  # deprecated function it calls in the library of g++ 12.
  add_compile_options(-Wno-unused-const-variable -Wno-deprecated-declarations)
endif()

if(MUSTER_FAULTS)
  add_compile_definitions(MUSTER_FAULTS=1)
endif()
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(MUSTER_MOLD mold)
if(MUSTER_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
