# MLIR 19 from the distribution, its tablegen helpers, and one precompiled header for every library that sees it.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(FATAL_ERROR "MLIR ${LLVM_VERSION_MAJOR} was found, 19 is needed: install libmlir-19-dev, mlir-19-tools and llvm-19-dev (tools/setup.sh does)")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Code that tablegen makes has unused parameters; this goes behind -Wextra.
add_library(llmc_mlir_options INTERFACE)
target_compile_options(llmc_mlir_options INTERFACE -Wno-unused-parameter)
target_link_libraries(llmc_mlir_options INTERFACE llmc_options)

if(LLMC_PCH)
  file(WRITE "${CMAKE_BINARY_DIR}/llmc_pch.cpp" "// The precompiled header needs one source file to belong to.\n")
  add_library(llmc_mlir_pch STATIC "${CMAKE_BINARY_DIR}/llmc_pch.cpp")
  target_include_directories(llmc_mlir_pch PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  target_include_directories(llmc_mlir_pch SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(llmc_mlir_pch PRIVATE llmc_options llmc_mlir_options)
  target_precompile_headers(llmc_mlir_pch PRIVATE
    <mlir/Dialect/Func/IR/FuncOps.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/DialectImplementation.h>
    <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h> <mlir/Pass/Pass.h>
    <mlir/Transforms/GreedyPatternRewriteDriver.h>)
endif()
