// Bytes that no honest client sends. The server answers with an error or closes, never crashes or hangs, and other
// clients do not notice.
#include "test/unit/serve/fixture.h"

#include <fstream>
#include <unistd.h>

namespace llmrt::test {
namespace {

using std::chrono::milliseconds;

class Hostile : public ServeTest {};

std::string times(const std::string &s, int n) {
  std::string out;
  out.reserve(s.size() * static_cast<size_t>(n));
  for (int i = 0; i < n; ++i)
    out += s;
  return out;
}

TEST_F(Hostile, Bodies) {
  const std::string bodies[] = {
      "", "{", "[]", "null", "\"x\"", "5", "{\"model\":}", "\xff\xfe{}", times("[", 100'000), times("{\"a\":", 100'000),
      times("[", 99) + times("]", 99), R"({"prompt": "\ud800"})", R"({"messages": "\ud800"})", R"({"prompt": "\udc00\ud800"})",
      "{\"prompt\": \"\xc3\"}", "{\"prompt\": \"\xed\xa0\x80\"}", "{\"prompt\": \"\xf5\x80\x80\x80\"}", R"({"prompt": "x", "temperature": NaN})",
      R"({"prompt": "x", "temperature": Infinity})", R"({"prompt": "x", "temperature": 1e999})", R"({"prompt": "x", "max_tokens": -1})",
      R"({"prompt": "x", "max_tokens": 99999999999999999999})", R"({"prompt": "x",})", "{'prompt': 'x'}", R"({"prompt": "x"} trailing)",
      R"({"prompt": "x" "n": 1})", "{\"prompt\": \"a\nb\"}", R"({"prompt": "\x"})", std::string("{\"prompt\": \"a\0b\"}", 17),
      std::string(1000, '\0'), "/* comment */ {}", R"({"": ""})", times("9", 10'000), "{\"prompt\": " + times("1", 10'000) + "}",
      "{\"prompt\": \"x\", \"logit_bias\": {" + times("\"1\": 1, ", 5000) + "\"1\": 1}, \"n\": 0}",
      R"({"prompt": "x", "n": 0, "prompt": "y"})", "{\"messages\": [{\"role\": \"user\", \"content\": " + times("[", 90) + times("]", 90) + "}]}"};
  for (const char *path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"}) {
    for (const std::string &body : bodies) {
      Reply reply = Client(port()).post(path, body);
      // Some are wrong only where a text is generated.
      if (path == std::string("/tokenize") && reply.status == 200 && body.rfind("{\"prompt\": \"x\", \"", 0) == 0)
        continue;
      EXPECT_EQ(reply.status, 400) << path << " " << body.substr(0, 80) << ": " << reply.body.substr(0, 300);
      EXPECT_TRUE(reply.status != 400 || reply.json()["error"]["message"].is_string());
    }
  }
  EXPECT_EQ(engine.submitted, 0);
  expect_alive();
}

// Objects keep their order in lists: without a bound a million keys would take hours.
TEST_F(Hostile, ManyKeysAndValues) {
  std::string keys = "{\"prompt\": \"x\"";
  for (int i = 0; i < 300'000; ++i)
    keys += ", \"k" + std::to_string(i) + "\": 1";
  EXPECT_EQ(Client(port()).post("/v1/completions", keys + "}").status, 400);
  EXPECT_EQ(Client(port()).post("/v1/completions", "{\"prompt\": [" + times("0,", 5'000'000) + "0]}").status, 400);
  EXPECT_EQ(Client(port()).post("/v1/completions", "{\"prompt\": [" + times("[],", 3'000'000) + "[]]}").status, 400);
  EXPECT_EQ(Client(port()).post("/tokenize", "{\"prompt\": \"" + std::string(3'000'000, 'x') + "\"}").status, 200);
  expect_alive();
}

size_t resident_bytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// What is made of stop strings is large, and made once, not for each choice.
TEST_F(Hostile, LongStopStringsOfManyChoices) {
  engine.max_active = 1024;
  engine.step = milliseconds(1);
  expect_alive();
  Json stops = Json::array();
  for (int i = 0; i < 64; ++i)
    stops.push_back(std::to_string(i) + std::string(4000, 'x'));
  const size_t before = resident_bytes();
  Reply reply = post("/v1/completions", {{"prompt", Json::array({"a", "b", "c", "d"})}, {"n", 128}, {"stop", stops}, {"max_tokens", 2}});
  EXPECT_EQ(reply.status, 200) << reply.body.substr(0, 300);
  EXPECT_EQ(reply.json()["choices"].size(), 512u);
  EXPECT_LT(resident_bytes(), before + (size_t{1} << 30));
}

TEST_F(Hostile, MalformedRequests) {
  const std::pair<std::string, int> requests[] = {
      {"\r\n\r\n", 400}, {"GET\r\n\r\n", 400}, {"GET /health\r\n\r\n", 400}, {"GET /health HTTP/9.9\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400}, {"GET /health HTTP/1.1\r\n: empty\r\n\r\n", 400},
      {std::string("GET /he\0alth HTTP/1.1\r\n\r\n", 26), 400}, {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS hello \r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: abc\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n123456", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nContent-Length: 17000000\r\n\r\n", 413},
      {"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1100000\r\n" + std::string(17'900'000, 'x'), 413},
      {"GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\n\r\n", 431},
      {"GET /health HTTP/1.1\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
      {"GET /health HTTP/1.1\r\n" + times("A: b\r\n", 10'000) + "\r\n", 431}, {std::string(100'000, 'x'), 400},
      {"POST /v1/completions HTTP/1.1\r\n\r\n", 400}, {"POST /v1/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400}};
  for (const auto &[bytes, status] : requests) {
    Client client(port());
    client.send(bytes);
    Reply reply = client.receive();
    // The two of them are about the same fact, and which one comes first is up to the parser.
    EXPECT_TRUE(reply.status == status || (status == 431 && reply.status == 400) || (bytes[0] == 'x' && reply.status == 431))
        << reply.status << " instead of " << status << " for " << bytes.substr(0, 100);
    EXPECT_TRUE(reply.json()["error"]["message"].is_string());
  }
  EXPECT_EQ(engine.submitted, 0);
  expect_alive();
}

TEST_F(Hostile, TruncatedAndAbandoned) {
  const std::string whole = Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 3})");
  for (size_t n = 0; n < whole.size(); n += 3) {
    Client client(port());
    client.send(whole.substr(0, n));
    if (n % 2)
      client.half_close();
  }
  EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
  EXPECT_EQ(engine.submitted, 0);
  expect_alive();
}

TEST_F(Hostile, SlowClients) {
  options.header_timeout = milliseconds(300);
  options.body_timeout = milliseconds(300);
  options.idle_timeout = milliseconds(400);
  Client silent(port()), header(port()), body(port()), drip(port());
  header.send("POST /v1/compl");
  body.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{\"pro");
  for (int i = 0; i < 30; ++i) { // one byte at a time does not put the end off
    drip.send(i == 0 ? "G" : "x");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(header.receive().status, 408);
  EXPECT_EQ(body.receive().status, 408);
  EXPECT_TRUE(drip.closed_within(milliseconds(3000)));
  EXPECT_TRUE(silent.closed_within(milliseconds(3000)));
  expect_alive();
}

TEST_F(Hostile, ByteByByteIsFine) {
  Client client(port());
  for (char c : Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 5})"))
    client.send(std::string(1, c));
  EXPECT_EQ(client.receive().json()["choices"][0]["text"], "Hello");
}

TEST_F(Hostile, ForeignDialects) {
  Client client(port());
  client.send("POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10;ext=1\r\n{\"prompt\": \"x\", \r\n"
              "10\r\n\"max_tokens\": 5}\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.receive().json()["choices"][0]["text"], "Hello");
  // The same connection goes on.
  client.send("POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 32\r\n\r\n");
  EXPECT_TRUE(client.wait_for("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send(R"({"prompt": "x", "max_tokens": 4})");
  EXPECT_EQ(client.receive().json()["choices"][0]["text"], "Hell");
  client.send("GET http://test/version HTTP/1.1\r\nHost: test\r\n\r\n");
  EXPECT_EQ(client.receive().json()["version"], "1.2.3");

  Client old(port());
  old.send("GET /version HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive().status, 200);
  EXPECT_TRUE(old.closed_within(milliseconds(3000)));
  Client old_stream(port());
  const std::string body = R"({"prompt": "x", "max_tokens": 3, "stream": true})";
  old_stream.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  Reply reply = old_stream.receive();
  EXPECT_EQ(reply.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(reply.events().back(), "[DONE]");
}

TEST_F(Hostile, Pipelining) {
  Client client(port());
  std::string all;
  for (int i = 1; i <= 20; ++i)
    all += Client::post_text("/v1/completions", "{\"prompt\": \"x\", \"max_tokens\": " + std::to_string(i) + "}");
  client.send(all + "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  for (int i = 1; i <= 20; ++i)
    EXPECT_EQ(client.receive().json()["usage"]["completion_tokens"], i);
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.closed_within(milliseconds(3000)));
  // More than is read ahead while a request runs.
  engine.step = milliseconds(5);
  Client greedy(port());
  std::string big = Client::post_text("/v1/completions", "{\"prompt\": \"x\", \"max_tokens\": 2, \"user\": \"" + std::string(200'000, 'u') + "\"}");
  std::thread writer([&] { greedy.send(big + big + big); });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(greedy.receive().status, 200);
  writer.join();
}

// A client that asks for a lot and reads nothing cannot fill the server's memory or hold its engine.
TEST_F(Hostile, ClientsThatDoNotRead) {
  options.max_pending_bytes = 200'000;
  options.write_timeout = milliseconds(2000);
  model->max_model_len = 1'000'000;
  engine.script = std::string(1000, 'x');
  Client client(port(), 4096);
  client.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 900000, "ignore_eos": true, "stream": true, "logprobs": 5})"));
  EXPECT_TRUE(eventually([&] { return engine.cancelled == 1; }, 20'000));
  expect_alive();
}

// Many bodies at once that never end: those beyond the budget are refused, and what they took is given back.
TEST_F(Hostile, BodiesOfManyClients) {
  options.max_bodies_bytes = options.max_body_bytes = 10'000'000;
  const std::string part = Client::post_text("/v1/completions", std::string(4'000'000, ' ')).substr(0, 3'900'000);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(milliseconds(300)); // what was answered is let go right after
    Client one(port()), other(port());
    one.send(part);
    other.send(part);
    std::this_thread::sleep_for(milliseconds(300));
    Reply reply = Client(port()).post("/v1/completions", std::string(4'000'000, ' '));
    EXPECT_EQ(reply.status, 503) << reply.body.substr(0, 200);
    EXPECT_EQ(reply.headers["retry-after"], "1");
    expect_alive();
    one.close();
    EXPECT_TRUE(eventually([&] { return Client(port()).post("/v1/completions", std::string(4'000'000, ' ')).status == 400; }));
    other.close();
    EXPECT_TRUE(eventually([&] { return Client(port()).post("/v1/completions", std::string(9'900'000, ' ')).status == 400; }));
  }
  std::this_thread::sleep_for(milliseconds(300));
  // Those that were read count no more.
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(Client(port()).post("/v1/completions", R"({"prompt": "x", "max_tokens": 1})" + std::string(1'000'000, ' ')).status, 200);
}

// Slow is not hostile: a long answer on a slow line takes as long as it takes, more than the time for a piece of it. (The
// system takes some MB at once, and more only when a good part of them is gone.)
TEST_F(Hostile, ClientsThatReadSlowly) {
  options.write_timeout = milliseconds(2000);
  Client client(port(), 32 << 10);
  client.send(Client::post_text("/tokenize", "{\"return_token_strs\": true, \"prompt\": \"" + std::string(2'000'000, 'x') + "\"}"));
  client.read_slowly(256 << 10, milliseconds(10));
  const auto begin = std::chrono::steady_clock::now();
  Reply reply = client.receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.whole) << "it was cut off after " << reply.body.size() << " bytes";
  EXPECT_GT(std::chrono::steady_clock::now() - begin, options.write_timeout);
}

TEST_F(Hostile, RandomBytes) {
  uint64_t state = 12345;
  auto next = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(state >> 33);
  };
  const std::string whole = Client::post_text("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3})");
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= next() % 4; ++k)
      bytes[next() % bytes.size()] = static_cast<char>(next());
    Client client(port());
    client.send(bytes);
    client.half_close();
    client.receive(milliseconds(2000));
  }
  expect_alive();
}

} // namespace
} // namespace llmrt::test
