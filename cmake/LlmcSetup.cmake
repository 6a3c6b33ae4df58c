# Global build settings: language level, warnings, sanitizers, ccache, output folders,
# and the dependencies that more than one folder uses.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT LLMC_BUILD_FUZZERS)
  add_link_options(-fuse-ld=mold)
endif()

# Warnings for our own targets; third-party headers come in as SYSTEM.
add_library(llmc_options INTERFACE)
target_compile_options(llmc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's std::stable_sort uses a function of its own that it has deprecated.
  target_compile_options(llmc_options INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlaps that cannot be in std::string (GCC bug 105329).
  target_compile_options(llmc_options INTERFACE -Wno-restrict)
endif()
if(LLMC_WERROR)
  target_compile_options(llmc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(LLMC_SANITIZE)
  add_compile_options(-fsanitize=${LLMC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # What AddressSanitizer cannot see: an index past a vector's size but inside its capacity, an empty optional read.
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${LLMC_SANITIZE})
endif()
if(LLMC_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
include(LlmcTargets)
