// Unicode normalisation forms, equal to those of the `tokenizers` package: code points that its
// (Unicode 9) tables do not know pass through unchanged.
#pragma once

#include <string>
#include <string_view>

namespace llmrt::text {

enum class Form { kNfc, kNfd, kNfkc, kNfkd };

// `text` must be valid UTF-8. Time is O(n log n) for any input, also for long runs of combining marks.
std::string normalize(std::string_view text, Form form);

// One code point at a time: Rust's char::to_lowercase (no context, so every capital sigma becomes σ).
std::string lowercase(std::string_view text);

// Without the combining marks.
std::string strip_accents(std::string_view text);

} // namespace llmrt::text
