// One client's connection: reads requests (one at a time, pipelined ones wait), hands them to the API, and writes what
// comes back. It keeps reading while a request runs, so that a client that leaves is noticed at once. All of it runs
// on the connection's own strand.
#pragma once

#include "runtime/serve/body_budget.h"
#include "runtime/serve/exchange.h"
#include "runtime/serve/server.h"

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>

namespace llmrt::serve {

class Connection : public std::enable_shared_from_this<Connection> {
public:
  using Handle = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;
  using Socket = boost::asio::ip::tcp::socket;

  /// `io` is kept alive. The socket's executor is a strand. `on_end` is called once, when the socket is closed.
  Connection(std::shared_ptr<boost::asio::io_context> io, Socket socket, const ServerOptions &options,
             std::shared_ptr<BodyBudget> bodies, Handle handle, std::function<void()> on_end);
  ~Connection();

  boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  void start();
  /// The server has no room: answers 503 and closes.
  void refuse();
  /// No further requests: closes at once if none is running, else after its answer.
  void drain();
  /// Closes now.
  void close();

  /// When it began to wait for a request, by the steady clock; the largest time where it does not wait. From any thread.
  std::chrono::steady_clock::time_point idle_since() const { return std::chrono::steady_clock::time_point(idle_since_.load()); }
  /// Another takes its place: closes if it still waits, and is not waiting from now on.
  void give_way();

private:
  class Reply;
  enum class State {
    idle,     ///< between requests, nothing of the next one seen
    header,   ///< part of a header is here
    body,     ///< part of a body is here
    busy,     ///< a request is with the API
    lingering, ///< the last answer is out; what still comes in is thrown away
    closed,
  };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void begin_idle();
  void end_idle() { idle_since_ = std::chrono::steady_clock::duration::max(); }
  void read();
  void on_read(const boost::system::error_code &error, size_t n);
  void parse();
  void on_header();
  void on_request();
  void reject(int status, const std::string &message);
  void set_deadline(std::chrono::milliseconds time);
  void on_deadline();
  void client_gone();

  // Called by the reply, on the strand, for the request of that number.
  void respond(uint64_t number, HttpResponse &&response);
  void start_stream(uint64_t number);
  void write(uint64_t number, std::string &&data);
  void finish(uint64_t number);
  void on_gone(uint64_t number, std::function<void()> &&callback);

  std::string head(int status, const std::string &content_type,
                   const std::vector<std::pair<std::string, std::string>> &headers) const;
  void send(std::string data);
  void send_piece();
  void on_sent(const boost::system::error_code &error, size_t n);
  void answered();
  void after_answer();
  void linger();

  const std::shared_ptr<boost::asio::io_context> io_; // outlives the socket
  Socket socket_;
  boost::asio::steady_timer timer_, write_timer_;
  const ServerOptions &options_;
  const std::shared_ptr<BodyBudget> bodies_;
  const Handle handle_;
  std::function<void()> on_end_;

  State state_ = State::idle;
  std::atomic<std::chrono::steady_clock::duration> idle_since_{std::chrono::steady_clock::duration::max()};
  std::array<char, 16 << 10> chunk_; // where reads go
  boost::beast::flat_buffer buffer_; // what is not parsed yet
  std::optional<Parser> parser_;
  std::shared_ptr<BodyBudget::Lease> lease_; // of the body that arrives
  bool reading_ = false;
  uint64_t deadline_ = 0; // generation of the timer, so that a late expiry is not taken for a current one
  uint64_t write_deadline_ = 0;
  uint64_t number_ = 0; // of the request in progress
  bool keep_alive_ = true, head_only_ = false, http10_ = false;
  bool streaming_ = false, complete_ = false, draining_ = false;
  std::function<void()> gone_;

  std::string pending_, sending_;
  size_t sent_ = 0; // of sending_
  bool writing_ = false;
};

} // namespace llmrt::serve
