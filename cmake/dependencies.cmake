# Everything comes from the distribution; `./dev` installs it.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(CURL REQUIRED)
find_package(PkgConfig REQUIRED)

find_library(MUSTER_SQLITE3 sqlite3 REQUIRED)
add_library(SQLite3 INTERFACE IMPORTED)
target_link_libraries(SQLite3 INTERFACE ${MUSTER_SQLITE3})

find_library(MUSTER_HTTPLIB cpp-httplib REQUIRED)
add_library(httplib INTERFACE IMPORTED)
target_link_libraries(httplib INTERFACE ${MUSTER_HTTPLIB} Threads::Threads)
# As the packaged library was built: these change the layout of its types.
target_compile_definitions(httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
                                             CPPHTTPLIB_BROTLI_SUPPORT)

if(MUSTER_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  find_package(rapidcheck CONFIG REQUIRED)
  # The exact solver of integer programs that procurement is measured against.
  pkg_check_modules(cbc REQUIRED IMPORTED_TARGET cbc)
endif()
