// Connections and the server over time: clients that leave, many at once, limits, and the orderly end.
#include "test/unit/serve/fixture.h"

#include <csignal>

namespace llmrt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Lifecycle : public ServeTest {
protected:
  void make_endless() {
    engine.step = milliseconds(2);
    model->max_model_len = 1'000'000;
  }
  static std::string endless(bool stream) {
    return Client::post_text("/v1/completions", std::string(R"({"prompt": "x", "max_tokens": 900000, "ignore_eos": true, "stream": )") +
                                                    (stream ? "true}" : "false}"));
  }
};

TEST_F(Lifecycle, DisconnectsCancelAtOnce) {
  make_endless();
  for (bool stream : {true, false}) {
    int before = engine.cancelled;
    auto client = std::make_unique<Client>(port());
    client->send(endless(stream));
    ASSERT_TRUE(eventually([&] { return engine.stats().running == 1; }));
    if (stream) {
      EXPECT_TRUE(client->wait_for("data: "));
    }
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_EQ(engine.cancelled, before);
    auto left = steady_clock::now();
    client.reset();
    EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
    EXPECT_LT(steady_clock::now() - left, milliseconds(2000));
    EXPECT_EQ(engine.cancelled, before + 1);
  }
  // Several choices of one request go together.
  {
    Client client(port());
    client.send(Client::post_text("/v1/completions", R"({"prompt": ["a", "b"], "n": 4, "max_tokens": 900000, "ignore_eos": true})"));
    ASSERT_TRUE(eventually([&] { return engine.stats().running == 8; }));
  }
  EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
  engine.step = milliseconds(0);
  expect_alive();
}

TEST_F(Lifecycle, KeepAlive) {
  Client client(port());
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(client.post("/v1/completions", R"({"prompt": "x", "max_tokens": 2})").json()["choices"][0]["text"], "He");
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(client.post("/v1/completions", R"({"prompt": "x", "max_tokens": 2, "stream": true})").events().back(), "[DONE]");
  ASSERT_EQ(client.post("/v1/completions", "{").status, 400);
  ASSERT_EQ(client.get("/health").status, 200) << "a bad body does not end the connection";
}

TEST_F(Lifecycle, ManyAtOnce) {
  engine.step = std::chrono::microseconds(100);
  constexpr int kClients = 100, kRounds = 4;
  std::atomic<int> right{0};
  std::mutex mutex;
  std::string wrong;
  std::vector<std::thread> threads;
  uint16_t to = port();
  for (int i = 0; i < kClients; ++i)
    threads.emplace_back([&, i] {
      Client client(to);
      for (int round = 0; round < kRounds; ++round) {
        const int tokens = 1 + (i * 7 + round) % 40;
        Json body = {{"prompt", "client " + std::to_string(i) + " round " + std::to_string(round)}, {"return_token_ids", true}, {"max_tokens", tokens}, {"stream", i % 2 == 0}};
        Reply reply = client.post("/v1/completions", body.dump());
        std::string text;
        if (i % 2 == 0) {
          auto events = reply.events();
          for (size_t k = 0; k + 1 < events.size(); ++k)
            text += Json::parse(events[k])["choices"][0]["text"].get<std::string>();
        } else if (reply.status == 200) {
          text = reply.json()["choices"][0]["text"].get<std::string>();
        }
        // A cut emoji ends as a replacement character.
        std::string whole = engine.script.substr(0, static_cast<size_t>(tokens));
        if (size_t emoji = engine.script.find("👋"); tokens > static_cast<int>(emoji) && tokens < static_cast<int>(emoji) + 4)
          whole = engine.script.substr(0, emoji) + "\ufffd";
        if (text == whole) {
          ++right;
          continue;
        }
        std::lock_guard lock(mutex);
        wrong += "client " + std::to_string(i) + " round " + std::to_string(round) + ", " + std::to_string(tokens) + " tokens: " +
                 std::to_string(reply.status) + (reply.whole ? "" : " cut off") + " " + reply.body + "\n";
      }
    });
  for (auto &thread : threads)
    thread.join();
  EXPECT_EQ(right, kClients * kRounds) << wrong;
}

TEST_F(Lifecycle, ConnectionLimit) {
  options.max_connections = 3;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    ASSERT_EQ(clients.back()->get("/health").status, 200);
  }
  Client extra(port());
  Reply reply = extra.receive();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers["retry-after"], "1");
  EXPECT_TRUE(extra.closed_within(milliseconds(4000)));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return get("/health").status == 200; }));
}

// Connections that nobody uses keep nobody out; those at work, and those just used, stay.
TEST_F(Lifecycle, IdleConnectionsGiveWay) {
  options.max_connections = 3;
  engine.step = milliseconds(20);
  Client working(port()), first(port()), second(port());
  working.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 100, "ignore_eos": true, "stream": true})"));
  ASSERT_TRUE(working.wait_for("data: "));
  ASSERT_EQ(first.get("/health").status, 200);
  std::this_thread::sleep_for(milliseconds(1200));
  ASSERT_EQ(second.get("/health").status, 200);
  Client third(port());
  EXPECT_EQ(third.get("/health").status, 200);
  EXPECT_TRUE(first.closed_within(milliseconds(1000)));
  Client fourth(port());
  EXPECT_EQ(fourth.receive().status, 503) << "the others are at work, or have just been used";
  EXPECT_EQ(second.get("/health").status, 200);
  EXPECT_TRUE(working.wait_for("[DONE]"));
}

TEST_F(Lifecycle, StopLetsShortRequestsFinish) {
  engine.step = milliseconds(20);
  Client client(port()), idle(port());
  ASSERT_EQ(idle.get("/health").status, 200);
  client.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 20})"));
  ASSERT_TRUE(eventually([&] { return engine.stats().running == 1; }));
  auto asked = steady_clock::now();
  server->stop();
  EXPECT_TRUE(idle.closed_within(milliseconds(2000)));
  Reply reply = client.receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers["connection"], "close");
  client.close();
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }));
  EXPECT_LT(steady_clock::now() - asked, milliseconds(3500)) << "it did not wait for its whole grace";
  EXPECT_EQ(Client(server->port()).get("/health").status, 0) << "nothing listens any more";
}

// A stop that comes while a request is being handed to the engine: it has been taken, so it gets its time like the others.
TEST_F(Lifecycle, StopWhileARequestIsTaken) {
  engine.step = milliseconds(5);
  engine.on_submitted = [&] {
    server->stop();
    EXPECT_TRUE(eventually([&] { return get("/health").status != 200; }));
  };
  Client client(port());
  client.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 20})"));
  EXPECT_EQ(client.receive().status, 200);
  client.close();
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }));
}

TEST_F(Lifecycle, StopEndsLongRequests) {
  make_endless();
  options.drain_time = milliseconds(300);
  Client stream(port()), whole(port());
  stream.send(endless(true));
  whole.send(endless(false));
  ASSERT_TRUE(stream.wait_for("data: "));
  ASSERT_TRUE(eventually([&] { return engine.stats().running == 2; }));
  auto asked = steady_clock::now();
  server->stop();
  // Connections that are open are told that the server is going.
  Reply told = whole.receive();
  EXPECT_EQ(told.status, 503) << told.body;
  auto events = stream.receive().events();
  ASSERT_GE(events.size(), 3u);
  EXPECT_NE(events[events.size() - 2].find("shutting down"), std::string::npos);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }, 8000));
  EXPECT_LT(steady_clock::now() - asked, milliseconds(6000));
  EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
}

TEST_F(Lifecycle, SigtermEndsIt) {
  make_endless();
  options.drain_time = milliseconds(200);
  Client stream(port());
  stream.send(endless(true));
  ASSERT_TRUE(stream.wait_for("data: "));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }, 8000));
  EXPECT_TRUE(stream.wait_for("[DONE]"));
}

// Signals that come together are one; a later one ends the grace.
TEST_F(Lifecycle, TwoSignalsLetShortRequestsFinish) {
  engine.step = milliseconds(20);
  options.drain_time = milliseconds(10'000);
  Client client(port());
  client.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 30})"));
  ASSERT_TRUE(eventually([&] { return engine.stats().running == 1; }));
  kill(getpid(), SIGTERM);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(client.receive(milliseconds(4000)).status, 200);
  client.close();
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }));
}

TEST_F(Lifecycle, ALaterSignalEndsTheGrace) {
  make_endless();
  options.drain_time = milliseconds(60'000);
  Client client(port());
  client.send(endless(false));
  ASSERT_TRUE(eventually([&] { return engine.stats().running == 1; }));
  kill(getpid(), SIGTERM);
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_FALSE(run_returned);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(client.receive(milliseconds(4000)).status, 503);
  client.close();
  EXPECT_TRUE(eventually([&] { return run_returned.load(); }));
}

// As `timeout`, and shells to a whole group, send signals: several, at once. An idle server ends with the first.
TEST_F(Lifecycle, SignalsInARow) {
  for (int round = 0; round < 200; ++round) {
    run_returned = false;
    ASSERT_EQ(get("/health").status, 200);
    for (int i = 0; i < 3; ++i)
      kill(getpid(), i == 1 ? SIGINT : SIGTERM);
    ASSERT_TRUE(eventually([&] { return run_returned.load(); }, 3000)) << "in round " << round;
    stop();
  }
}

TEST_F(Lifecycle, RequestsWhileDraining) {
  engine.step = milliseconds(20);
  options.drain_time = milliseconds(2000);
  Client busy(port()), late(port());
  busy.send(Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 30, "stream": true})"));
  ASSERT_TRUE(busy.wait_for("data: "));
  late.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{\"prompt\""); // on its way already
  std::this_thread::sleep_for(milliseconds(50));
  server->stop();
  std::this_thread::sleep_for(milliseconds(50));
  late.send(": \"x\"}");
  EXPECT_EQ(late.receive().status, 503);
  EXPECT_EQ(busy.receive().events().back(), "[DONE]");
}

TEST_F(Lifecycle, AddressInUse) {
  options.port = 0;
  start();
  serve::ServerOptions same = options;
  same.port = server->port();
  try {
    serve::Server second(engine, model, same);
    FAIL() << "two servers on one port";
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(same.port)), std::string::npos) << e.what();
  }
  EXPECT_THROW(serve::check_address(same), Error);
  same.host = "no.such.host.invalid";
  EXPECT_THROW(serve::Server(engine, model, same), Error);
  EXPECT_THROW(serve::check_address(same), Error);
}

// To ask takes nothing.
TEST_F(Lifecycle, AddressIsFree) {
  options.port = 0;
  EXPECT_NO_THROW(serve::check_address(options));
  start();
  serve::ServerOptions other = options;
  other.port = 0;
  EXPECT_NO_THROW(serve::check_address(other));
  EXPECT_NO_THROW(serve::check_address(other));
}

TEST_F(Lifecycle, RunsAgainAfterAnother) {
  for (int i = 0; i < 5; ++i) {
    FakeEngine fresh;
    serve::ServerOptions again;
    again.port = 0;
    serve::Server one(fresh, model, again);
    std::thread runner([&] { one.run(); });
    EXPECT_EQ(Client(one.port()).get("/health").status, 200);
    one.stop();
    runner.join();
  }
}

} // namespace
} // namespace llmrt::test
