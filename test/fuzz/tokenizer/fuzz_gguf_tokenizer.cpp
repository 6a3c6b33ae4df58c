// Fuzzes the step from GGUF metadata to tokenizer.json: whatever it accepts, the tokenizer must load.
// Input: lines; the first gives model, pre and flags, the others one token each as "type score text", then
// an empty line, merges, another empty line, and text to encode.
#include "runtime/support/error.h"
#include "runtime/text/gguf_tokenizer.h"
#include "test/fuzz/tokenizer/round_trip.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace llmrt::text;
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  auto line = [&] {
    size_t end = rest.find('\n');
    std::string out(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    return out;
  };
  GgufTokenizer g;
  std::string head = line();
  size_t slash = head.find('/');
  g.model = head.substr(0, slash);
  if (slash != head.npos) {
    size_t flags = head.find('/', slash + 1);
    g.pre = head.substr(slash + 1, flags == head.npos ? flags : flags - slash - 1);
    for (char c : flags == head.npos ? std::string() : head.substr(flags)) {
      if (c == 'b')
        g.add_bos = true;
      else if (c == 'B')
        g.add_bos = false;
      else if (c == 'e')
        g.add_eos = true;
      else if (c == 's')
        g.add_space_prefix = false;
      else if (c >= '0' && c <= '9')
        g.bos_id = g.eos_id = g.unk_id = c - '0';
    }
  }
  for (std::string l = line(); !l.empty(); l = line()) {
    g.token_types.push_back(l[0] - '0');
    g.scores.push_back(l.size() > 1 ? static_cast<float>(l[1]) : 0.0f);
    g.tokens.push_back(l.size() > 2 ? l.substr(2) : "");
  }
  for (std::string l = line(); !l.empty(); l = line())
    g.merges.push_back(l);
  std::string json;
  try {
    json = gguf_to_tokenizer_json(g);
  } catch (const llmrt::Error &) {
    return 0;
  }
  fuzz::round_trip(Tokenizer::from_json(json), rest); // must not throw
  return 0;
}
