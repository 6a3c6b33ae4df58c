# How fast weights get from the page cache to where they go.
if(TARGET llmrt_exec AND TARGET llmrt_plan)
  add_executable(bench_loader "${CMAKE_CURRENT_LIST_DIR}/bench_loader.cpp")
  target_include_directories(bench_loader PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  target_link_libraries(bench_loader PRIVATE llmrt_exec llmrt_plan llmrt_support llmc_options)
  set_target_properties(bench_loader PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/bin")
endif()
