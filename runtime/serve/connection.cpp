// Connection handling (see connection.h).
#include "runtime/serve/connection.h"

#include "runtime/serve/api_error.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>

namespace llmrt::serve {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {
constexpr size_t kMaxPipelined = 64 << 10; // read ahead while a request runs
constexpr size_t kPiece = 128 << 10;       // of an answer
constexpr std::chrono::milliseconds kLinger{2000};
} // namespace

// The API's way back: carries calls over to the strand, where a number tells whether they are still wanted.
class Connection::Reply : public Exchange {
public:
  Reply(std::shared_ptr<Connection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}

  void respond(HttpResponse response) override {
    on_strand([n = number_, response = std::move(response)](Connection &c) mutable { c.respond(n, std::move(response)); });
  }
  void start_stream() override {
    on_strand([n = number_](Connection &c) { c.start_stream(n); });
  }
  void write(std::string data) override {
    on_strand([n = number_, data = std::move(data)](Connection &c) mutable { c.write(n, std::move(data)); });
  }
  void finish() override {
    on_strand([n = number_](Connection &c) { c.finish(n); });
  }
  void on_gone(std::function<void()> callback) override {
    on_strand([n = number_, callback = std::move(callback)](Connection &c) mutable { c.on_gone(n, std::move(callback)); });
  }
  void post(std::function<void()> work) override { asio::post(connection_->socket_.get_executor(), std::move(work)); }

private:
  template <typename Work> void on_strand(Work work) {
    asio::dispatch(connection_->socket_.get_executor(),
                   [connection = connection_, work = std::move(work)]() mutable { work(*connection); });
  }
  const std::shared_ptr<Connection> connection_;
  const uint64_t number_;
};

Connection::Connection(std::shared_ptr<asio::io_context> io, Socket socket, const ServerOptions &options,
                       std::shared_ptr<BodyBudget> bodies, Handle handle, std::function<void()> on_end)
    : io_(std::move(io)), socket_(std::move(socket)), timer_(socket_.get_executor()), write_timer_(socket_.get_executor()),
      options_(options), bodies_(std::move(bodies)), handle_(std::move(handle)), on_end_(std::move(on_end)) {}

Connection::~Connection() {
  if (on_end_)
    on_end_();
}

void Connection::start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  begin_idle();
  read();
}

void Connection::begin_idle() {
  state_ = State::idle;
  idle_since_ = std::chrono::steady_clock::now().time_since_epoch();
  set_deadline(options_.idle_timeout);
}

void Connection::give_way() {
  end_idle();
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::idle)
      self->close();
  });
}

void Connection::refuse() {
  keep_alive_ = false;
  state_ = State::busy;
  reject(503, "the server has as many connections as it takes (" + std::to_string(options_.max_connections) +
                  "): try again later");
}

void Connection::drain() {
  draining_ = true;
  if (state_ == State::idle)
    close();
}

void Connection::close() {
  if (state_ == State::closed)
    return;
  state_ = State::closed;
  end_idle();
  parser_.reset(); // others may hold the connection for a while
  lease_.reset();
  client_gone();
  timer_.cancel();
  write_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (on_end_)
    std::exchange(on_end_, nullptr)();
}

// --- reading ---

void Connection::read() {
  if (reading_ || state_ == State::closed)
    return;
  if (state_ == State::busy && buffer_.size() >= kMaxPipelined)
    return; // enough for now; goes on after the answer
  reading_ = true;
  // Not into the buffer itself: parsing moves its contents while a read is under way.
  socket_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](const error_code &error, size_t n) {
    self->reading_ = false;
    self->on_read(error, n);
  });
}

void Connection::on_read(const error_code &error, size_t n) {
  if (state_ == State::closed)
    return;
  if (error) {
    close();
    return;
  }
  if (state_ == State::lingering) {
    read();
    return;
  }
  buffer_.commit(asio::buffer_copy(buffer_.prepare(n), asio::buffer(chunk_, n)));
  if (state_ != State::busy)
    parse();
  read();
}

void Connection::parse() {
  if (buffer_.size() == 0)
    return;
  if (!parser_) {
    parser_.emplace();
    lease_ = std::make_shared<BodyBudget::Lease>(bodies_);
    parser_->header_limit(options_.max_header_bytes);
    parser_->body_limit(options_.max_body_bytes);
    parser_->eager(true);
    state_ = State::header;
    end_idle();
    set_deadline(options_.header_timeout);
  }
  while (buffer_.size() > 0 && !parser_->is_done()) {
    error_code error;
    const size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    if (error == http::error::need_more) {
      if (!parser_->is_header_done() && buffer_.size() > options_.max_header_bytes)
        error = http::error::header_limit;
      else
        error = {};
    }
    if (error) {
      if (error == http::error::header_limit)
        reject(431, "the request's header is larger than " + std::to_string(options_.max_header_bytes) + " bytes");
      else if (error == http::error::body_limit)
        reject(413, "the request's body is larger than " + std::to_string(options_.max_body_bytes) + " bytes");
      else
        reject(400, "this is not a well-formed HTTP request: " + error.message());
      return;
    }
    if (state_ == State::header && parser_->is_header_done())
      on_header();
    if (!lease_->grow_to(parser_->get().body().size())) {
      reject(503, "the bodies of all requests that arrive together are larger than " + std::to_string(bodies_->most()) +
                      " bytes: try again later");
      return;
    }
    if (used == 0)
      break;
  }
  if (parser_->is_done())
    on_request();
}

void Connection::on_header() {
  state_ = State::body;
  set_deadline(options_.body_timeout);
  const auto &request = parser_->get();
  if (!parser_->is_done() && request.version() == 11 &&
      boost::beast::iequals(request[http::field::expect], "100-continue"))
    send("HTTP/1.1 100 Continue\r\n\r\n");
}

void Connection::on_request() {
  auto message = parser_->release();
  parser_.reset();
  timer_.cancel();
  ++deadline_;
  state_ = State::busy;
  keep_alive_ = message.keep_alive() && !draining_;
  http10_ = message.version() < 11;
  HttpRequest request;
  request.method = std::string(message.method_string());
  head_only_ = request.method == "HEAD";
  std::string_view target(message.target().data(), message.target().size());
  if (target.starts_with("http://")) // the absolute form, as sent to proxies
    target.remove_prefix(std::min(target.find('/', 7), target.size()));
  request.path = std::string(target.substr(0, target.find_first_of("?#")));
  request.authorization = std::string(message[http::field::authorization]);
  request.wanted_headers = std::string(message[http::field::access_control_request_headers]);
  request.body = std::move(message.body());
  request.lease = std::exchange(lease_, nullptr);
  ++number_;
  streaming_ = complete_ = false;
  gone_ = nullptr;
  handle_(std::move(request), std::make_shared<Reply>(shared_from_this(), number_));
}

// Answers what cannot become a request, and ends the connection, whose place in the stream is lost.
void Connection::reject(int status, const std::string &message) {
  timer_.cancel();
  ++deadline_;
  state_ = State::busy;
  keep_alive_ = false;
  head_only_ = http10_ = false;
  streaming_ = complete_ = false;
  parser_.reset();
  lease_.reset();
  buffer_.clear();
  HttpResponse response;
  response.status = status;
  response.body = error_body(status, message, {}, {});
  if (status == 503)
    response.headers.emplace_back("Retry-After", "1");
  respond(++number_, std::move(response));
}

void Connection::set_deadline(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this(), mine = ++deadline_](const error_code &error) {
    if (!error && mine == self->deadline_)
      self->on_deadline();
  });
}

void Connection::on_deadline() {
  if (state_ == State::header || state_ == State::body)
    reject(408, "the request took too long to arrive");
  else if (state_ != State::busy)
    close();
}

void Connection::client_gone() {
  ++number_; // later calls of the reply are not wanted
  if (gone_)
    std::exchange(gone_, nullptr)();
}

// --- answering ---

void Connection::on_gone(uint64_t number, std::function<void()> &&callback) {
  if (number != number_ || state_ == State::closed)
    callback(); // gone already
  else if (!complete_)
    gone_ = std::move(callback);
}

std::string Connection::head(int status, const std::string &content_type,
                             const std::vector<std::pair<std::string, std::string>> &headers) const {
  auto reason = http::obsolete_reason(static_cast<http::status>(status));
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason.data(), reason.size()) + "\r\n";
  if (status != 204)
    out += "Content-Type: " + content_type + "\r\n";
  out += "Access-Control-Allow-Origin: *\r\n";
  for (const auto &[name, value] : headers)
    out += name + ": " + value + "\r\n";
  out += keep_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  return out;
}

void Connection::respond(uint64_t number, HttpResponse &&response) {
  if (number != number_ || state_ != State::busy || streaming_ || complete_)
    return;
  keep_alive_ = keep_alive_ && !draining_;
  std::string data = head(response.status, response.content_type, response.headers);
  if (response.status != 204)
    data += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  data += "\r\n";
  if (!head_only_ && response.status != 204)
    data += response.body;
  answered();
  send(std::move(data));
}

void Connection::start_stream(uint64_t number) {
  if (number != number_ || state_ != State::busy || streaming_ || complete_)
    return;
  streaming_ = true;
  if (http10_ || draining_)
    keep_alive_ = false;
  std::vector<std::pair<std::string, std::string>> headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  if (!http10_)
    headers.emplace_back("Transfer-Encoding", "chunked");
  send(head(200, "text/event-stream; charset=utf-8", headers) + "\r\n");
}

void Connection::write(uint64_t number, std::string &&data) {
  if (number != number_ || !streaming_ || complete_ || data.empty())
    return;
  if (pending_.size() + data.size() > options_.max_pending_bytes) {
    close(); // the client does not read
    return;
  }
  if (http10_) {
    send(std::move(data));
    return;
  }
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  send(size + data + "\r\n");
}

void Connection::finish(uint64_t number) {
  if (number != number_ || !streaming_ || complete_)
    return;
  answered();
  send(http10_ ? std::string() : "0\r\n\r\n");
}

void Connection::answered() {
  complete_ = true;
  gone_ = nullptr;
}

void Connection::send(std::string data) {
  if (state_ == State::closed)
    return;
  pending_ += data;
  if (writing_)
    return;
  if (pending_.empty()) {
    after_answer();
    return;
  }
  writing_ = true;
  sending_.swap(pending_);
  pending_.clear();
  sent_ = 0;
  send_piece();
}

// The time is for a piece, so that a long answer reaches a client on a slow line, while one that does not read is noticed.
void Connection::send_piece() {
  write_timer_.expires_after(options_.write_timeout);
  write_timer_.async_wait([self = shared_from_this(), mine = ++write_deadline_](const error_code &error) {
    if (!error && mine == self->write_deadline_ && self->writing_)
      self->close();
  });
  asio::async_write(socket_, asio::buffer(sending_.data() + sent_, std::min(kPiece, sending_.size() - sent_)),
                    [self = shared_from_this()](const error_code &error, size_t n) { self->on_sent(error, n); });
}

void Connection::on_sent(const error_code &error, size_t n) {
  ++write_deadline_;
  write_timer_.cancel();
  sent_ += n;
  if (state_ != State::closed && !error && sent_ < sending_.size()) {
    send_piece();
    return;
  }
  writing_ = false;
  if (sending_.capacity() > kPiece) // not kept for as long as the client stays
    sending_ = {};
  if (state_ == State::closed)
    return;
  if (error) {
    close();
    return;
  }
  if (!pending_.empty())
    send({});
  else
    after_answer();
}

// Everything is written: on to the next request, if this one is done.
void Connection::after_answer() {
  if (state_ != State::busy || !complete_)
    return;
  if (!keep_alive_ || draining_) {
    linger();
    return;
  }
  begin_idle();
  parse();
  read();
}

// Closing with unread data in the socket would make the system throw the answer away before the client has read it.
void Connection::linger() {
  state_ = State::lingering;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  set_deadline(kLinger);
  read();
}

} // namespace llmrt::serve
