// Python's operators and subscripts over values.
#pragma once

#include "runtime/text/jinja/value.h"

namespace llmrt::text::jinja {

/// `op` is one of + - * / // % **. Throws for operands that it does not take, zero division and overflow.
Value binary(const std::string &op, const Value &a, const Value &b);
Value negative(const Value &v);
Value positive(const Value &v);

/// object[start:stop:step]; an absent bound is None.
Value slice(const Value &object, const Value &start, const Value &stop, const Value &step);

/// The item at an index counted from the end if negative; missing when out of range.
Value at_index(const Value &sequence, Int index);

/// Resolves the bounds of a slice against a length, as slice.indices() does.
struct SliceIndices {
  Int start, stop, step;
  size_t count;
};
SliceIndices slice_indices(size_t length, const Value &start, const Value &stop, const Value &step);

/// The C index of an integer argument, clamped to [-2^62, 2^62]; throws unless it is an integer.
int64_t to_index(const Value &v, const char *what);

std::string repeat(const std::string &s, Int times);

} // namespace llmrt::text::jinja
