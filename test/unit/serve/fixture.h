// A server on a free loopback port over the fake engine, with a tokenizer whose ids below 256 are bytes and a small
// chat template.
#pragma once

#include "runtime/serve/server.h"
#include "test/unit/serve/fake_engine.h"
#include "test/unit/serve/http_client.h"
#include "test/unit/serve/test_model.h"

#include <gtest/gtest.h>

namespace llmrt::test {

using Json = nlohmann::ordered_json;

class ServeTest : public ::testing::Test {
protected:
  void TearDown() override { stop(); }

  /// Started by the first use of port().
  uint16_t port();
  void start();
  void stop();
  Reply post(const std::string &path, const Json &body) { return Client(port()).post(path, body.dump()); }
  Reply get(const std::string &path) { return Client(port()).get(path); }
  /// A plain request is answered as ever.
  void expect_alive();
  /// Waits until the condition holds; false after some seconds.
  template <typename Condition> static bool eventually(Condition condition, int milliseconds = 5000) {
    for (int i = 0; i < milliseconds / 5; ++i) {
      if (condition())
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  FakeEngine engine; // outlives the server
  std::shared_ptr<serve::Model> model = make_model();
  serve::ServerOptions options;
  std::unique_ptr<serve::Server> server;
  std::thread thread;
  std::atomic<bool> run_returned{false};
};

/// The bytes of a text as ids.
std::vector<int32_t> bytes_of(const std::string &text);

} // namespace llmrt::test
