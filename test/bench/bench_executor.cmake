# The executor's own cost per step, beside what the kernels and the memory take.
if(TARGET llmrt_exec AND TARGET llmrt_plan_testing)
  add_executable(bench_executor bench_executor.cpp)
  target_include_directories(bench_executor PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  target_link_libraries(bench_executor PRIVATE llmrt_exec llmrt_plan_testing llmrt_cpu_kernels llmrt_support llmc_options)
  set_target_properties(bench_executor PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/bin")
endif()
