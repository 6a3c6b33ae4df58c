// A program that links failing_new.cpp has an operator new that fails once, where a thread has asked for that.
#pragma once

#include <atomic>

namespace llmrt::test {

// The calling thread's allocation number `at` from here on throws std::bad_alloc; 0: none does.
void fail_allocation(int at);
// Whether one has.
extern std::atomic<bool> allocation_failed;

} // namespace llmrt::test
