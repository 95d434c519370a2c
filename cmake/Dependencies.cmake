# The only place that finds libraries. All come from Debian 12 packages.
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(SYSTEMC REQUIRED IMPORTED_TARGET systemc)
# Debian's libsystemc is built as C++17 and checks that in its ABI tag; C++20 code links when it
# declares that level to the headers.
target_compile_definitions(PkgConfig::SYSTEMC INTERFACE SC_CPLUSPLUS=201703L)

if(TRN3SIM_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(TRN3SIM_BUILD_BENCHMARKS)
  find_package(benchmark 1.7 REQUIRED)
endif()
