// Fuzzes the server from the first byte of a connection: the HTTP parser, routes, JSON, request fields, chat template,
// and answers. Any bytes may come; each connection has to end, and nothing may crash. The engine answers at once.
#include "runtime/serve/api.h"
#include "runtime/serve/connection.h"
#include "test/unit/serve/test_model.h"

#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace llmrt;

class InstantEngine : public Engine {
public:
  uint64_t submit(EngineRequest request, SubmitError &error, std::string &message) override {
    message = check_sampling(request.sampling, 260);
    error = message.empty() ? SubmitError::None : SubmitError::Invalid;
    if (!message.empty())
      return 0;
    RequestEvent event;
    event.finish = FinishReason::Length;
    for (uint32_t i = 0; i < std::min(request.sampling.max_tokens, 8u); ++i) {
      TokenOutput token;
      token.id = static_cast<unsigned char>("a\xf0\x9f\x91\x8b\xff<e"[i]);
      if (request.sampling.logprobs >= 0)
        token.logprobs = TokenLogprobs{-0.5f, 1, {{token.id, -0.5f}, {256, -1.f}}};
      event.tokens.push_back(std::move(token));
    }
    if (request.sampling.prompt_logprobs >= 0)
      event.prompt_logprobs.resize(request.prompt.size());
    request.on_event(std::move(event));
    return ++id_;
  }
  void cancel(uint64_t) override {}
  EngineStats stats() const override { return {}; }
  std::vector<exec::RankMemory> memory() const override { return {}; }
  void drain() override {}
  bool wait_idle(double) override { return true; }

private:
  uint64_t id_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 60'000) // has to fit into the socket, which nobody reads meanwhile
    return 0;
  static InstantEngine engine;
  static const auto model = test::make_model();
  static const serve::ServerOptions options = [] {
    serve::ServerOptions o;
    o.max_header_bytes = 4096;
    o.max_body_bytes = 40'000;
    return o;
  }();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return 0;
  auto io = std::make_shared<boost::asio::io_context>(1);
  serve::ApiOptions api_options;
  api_options.version = "0";
  serve::Api api(engine, model, api_options, [&](std::function<void()> work) { boost::asio::post(*io, std::move(work)); });
  serve::Connection::Socket socket(boost::asio::make_strand(*io));
  socket.assign(boost::asio::ip::tcp::v4(), pair[0]);
  auto connection = std::make_shared<serve::Connection>(
      io, std::move(socket), options, std::make_shared<serve::BodyBudget>(30'000),
      [&](serve::HttpRequest request, std::shared_ptr<serve::Exchange> exchange) {
        api.handle(std::move(request), std::move(exchange));
      },
      [] {});
  size_t done = 0;
  while (done < size) {
    ssize_t n = send(pair[1], data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
      break;
    done += static_cast<size_t>(n);
  }
  boost::asio::post(connection->executor(), [connection] { connection->start(); });
  io->poll(); // everything that can be answered is
  shutdown(pair[1], SHUT_RDWR);
  close(pair[1]);
  connection.reset();
  io->run(); // ends when the connection has
  return 0;
}
