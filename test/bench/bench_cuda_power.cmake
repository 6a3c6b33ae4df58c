if(TARGET llmrt_cuda_kernels AND CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)90a") # also 90a-real
  add_executable(bench_cuda_power bench_cuda_power.cu)
  target_include_directories(bench_cuda_power PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(bench_cuda_power PRIVATE llmrt_cuda_kernels CUDA::cudart_static llmc_options ${CMAKE_DL_LIBS})
  set_target_properties(bench_cuda_power PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/bin")
endif()
