// See fixture.h.
#include "test/unit/serve/fixture.h"

namespace llmrt::test {

std::vector<int32_t> bytes_of(const std::string &text) {
  std::vector<int32_t> ids;
  for (char c : text)
    ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

void ServeTest::start() {
  options.port = 0;
  options.version = "1.2.3";
  server = std::make_unique<serve::Server>(engine, model, options);
  thread = std::thread([this] {
    server->run();
    run_returned = true;
  });
}

uint16_t ServeTest::port() {
  if (!server)
    start();
  return server->port();
}

void ServeTest::stop() {
  if (!server)
    return;
  server->stop();
  thread.join();
  server.reset();
}

void ServeTest::expect_alive() {
  Reply reply = post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 5}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["choices"][0]["text"], engine.script.substr(0, 5));
}

} // namespace llmrt::test
