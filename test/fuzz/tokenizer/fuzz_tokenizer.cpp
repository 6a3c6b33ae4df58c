// Fuzzes the tokenizer.json reader and, for documents that it accepts, encoding and decoding.
// Input: the document, a NUL byte, and the text to encode.
#include "runtime/support/error.h"
#include "test/fuzz/tokenizer/round_trip.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace llmrt::text;
  std::string_view input(reinterpret_cast<const char *>(data), size);
  size_t border = input.find('\0');
  std::string_view text = border == input.npos ? "a b" : input.substr(border + 1);
  try {
    fuzz::round_trip(Tokenizer::from_json(input.substr(0, border)), text);
  } catch (const llmrt::Error &) {
  }
  return 0;
}
