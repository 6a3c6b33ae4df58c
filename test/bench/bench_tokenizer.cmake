# bench_tokenizer: timings of encode and decode; bench_tokenizer.py runs it beside the tokenizers package.
if(TARGET llmrt_text)
  add_executable(bench_tokenizer "${CMAKE_CURRENT_LIST_DIR}/bench_tokenizer.cpp")
  target_include_directories(bench_tokenizer PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(bench_tokenizer PRIVATE llmrt_text llmc_options)
endif()
