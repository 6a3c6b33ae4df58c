# bench_sched: what the host does for a step beside the model: scheduling, sampling, the engine's threads.
if(TARGET llmrt_sched)
  add_executable(bench_sched "${CMAKE_CURRENT_LIST_DIR}/bench_sched.cpp")
  target_link_libraries(bench_sched PRIVATE llmrt_sched llmc_options)
endif()
