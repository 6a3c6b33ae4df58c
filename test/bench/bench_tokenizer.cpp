// Times one tokenizer on one text, single thread: load, encode (first time with an empty word cache, and
// best of several), decode. Prints one line of JSON; the checksum of the ids lets the caller compare.
#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string read_file(const char *path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "bench_tokenizer: cannot open %s\n", path);
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "Usage: bench_tokenizer TOKENIZER_JSON TEXT_FILE REPETITIONS\n");
    return 2;
  }
  std::string json = read_file(argv[1]), text = read_file(argv[2]);
  int repetitions = std::max(1, std::atoi(argv[3]));

  auto start = Clock::now();
  auto tokenizer = llmrt::text::Tokenizer::from_json(json);
  double load = seconds_since(start);

  double first = 0, best = 1e9, decode = 1e9;
  std::vector<int32_t> ids;
  for (int i = 0; i < repetitions; ++i) {
    start = Clock::now();
    ids = tokenizer->encode(text, false);
    double t = seconds_since(start);
    if (i == 0)
      first = t;
    best = std::min(best, t);
    start = Clock::now();
    std::string back = tokenizer->decode(ids, false);
    decode = std::min(decode, seconds_since(start));
  }
  unsigned long long sum = 14695981039346656037ull; // FNV-1a over the ids
  for (int32_t id : ids)
    sum = (sum ^ static_cast<unsigned>(id)) * 1099511628211ull;
  std::printf(
      "{\"load_s\": %.6f, \"first_encode_s\": %.6f, \"encode_s\": %.6f, \"decode_s\": %.6f, \"tokens\": %zu, "
      "\"checksum\": \"%016llx\"}\n",
      load, first, best, decode, ids.size(), sum);
  return 0;
}
