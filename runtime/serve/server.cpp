// Listening, threads and the orderly end (see server.h).
#include "runtime/serve/server.h"

#include "runtime/serve/api.h"
#include "runtime/serve/connection.h"
#include "runtime/serve/log.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <csignal>
#include <filesystem>
#include <list>
#include <sys/resource.h>
#include <thread>

namespace llmrt::serve {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

namespace {

constexpr size_t kSpareDescriptors = 16; // for connections that are refused, and for files
constexpr std::chrono::seconds kIdleToGiveWay{1};
constexpr std::chrono::milliseconds kSameSignal{300};

size_t open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator open("/proc/self/fd", error);
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

// Every connection takes a file descriptor. The usual soft limit of 1024 is below the hard one; where that allows too few, there
// are fewer connections, since one that nobody can accept waits without a word.
ServerOptions with_descriptors(ServerOptions options) {
  const size_t others = open_descriptors() + kSpareDescriptors, wanted = options.max_connections + others;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
    return options;
  rlimit raised = limit;
  raised.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0)
    raised = limit;
  if (raised.rlim_cur < wanted) {
    const size_t fit = raised.rlim_cur > others ? raised.rlim_cur - others : 1;
    log_warning("this process may open " + std::to_string(raised.rlim_cur) + " files (ulimit -n), which leaves " + std::to_string(fit) +
                " connections of --max-connections " + std::to_string(options.max_connections) + ": raise it to " + std::to_string(wanted));
    options.max_connections = fit;
  }
  return options;
}

// Returns what it listens on.
Tcp::endpoint listen(Tcp::acceptor &acceptor, const ServerOptions &options) {
  const std::string where = options.host + ":" + std::to_string(options.port);
  error_code error;
  Tcp::resolver resolver(acceptor.get_executor());
  auto found = resolver.resolve(options.host, std::to_string(options.port),
                                Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error || found.empty())
    throw Error("cannot listen on " + where + ": the host is not known (" + error.message() + ")");
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  auto check = [&](const error_code &e) {
    if (e)
      throw Error("cannot listen on " + where + ": " + e.message() +
                  (e == asio::error::address_in_use ? "; another server has this port, choose one with --port" : ""));
  };
  acceptor.open(endpoint.protocol(), error);
  check(error);
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  check(error);
  acceptor.listen(1024, error);
  check(error);
  return acceptor.local_endpoint();
}

} // namespace

void check_address(const ServerOptions &options) {
  asio::io_context io;
  Tcp::acceptor acceptor(io);
  listen(acceptor, options);
}

struct Server::Impl {
  Impl(Engine &e, std::shared_ptr<const Model> model, ServerOptions o)
      : engine(e), options(std::move(o)), pool(options.pool_threads), acceptor(asio::make_strand(*io)),
        signals(acceptor.get_executor()), timer(acceptor.get_executor()),
        api(engine, std::move(model), {options.api_key, options.version, options.metrics_prefix, options.stall_seconds},
            [this](std::function<void()> work) { asio::post(pool, std::move(work)); }) {}

  void accept();
  void on_accept(const error_code &error, Connection::Socket socket);
  std::vector<std::shared_ptr<Connection>> connections();
  bool make_place();
  void begin_end(const std::string &why);
  void drain_step();
  void close_all();

  Engine &engine;
  const ServerOptions options;
  const std::shared_ptr<BodyBudget> bodies = std::make_shared<BodyBudget>(std::max(options.max_bodies_bytes, options.max_body_bytes));
  std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>();
  asio::thread_pool pool; // for what takes long: JSON, templates, tokenization
  Tcp::acceptor acceptor;
  asio::signal_set signals;
  asio::steady_timer timer;
  Tcp::endpoint endpoint;
  Api api;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;

  std::mutex mutex; // guards the list
  std::list<std::weak_ptr<Connection>> open;
  size_t open_count = 0;

  // On the acceptor's strand:
  bool ending = false, told = false, ended = false;
  std::chrono::steady_clock::time_point end_began, end_of_grace, end_of_patience, next_warning;
};

void Server::Impl::accept() {
  acceptor.async_accept(asio::make_strand(*io), [this](const error_code &error, Connection::Socket socket) {
    on_accept(error, std::move(socket));
  });
}

void Server::Impl::on_accept(const error_code &error, Connection::Socket socket) {
  if (ending || error == asio::error::operation_aborted)
    return;
  if (error) {
    // Out of descriptors, most likely: those that wait stay in the system's queue meanwhile.
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_warning) {
      log_warning("cannot accept connections: " + error.message());
      next_warning = now + std::chrono::seconds(10);
    }
    timer.expires_after(std::chrono::milliseconds(100));
    timer.async_wait([this](const error_code &e) {
      if (!e && !ending)
        accept();
    });
    return;
  }
  bool full;
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex);
    full = open_count >= options.max_connections;
    ++open_count;
    auto place = open.insert(open.end(), std::weak_ptr<Connection>());
    connection = std::make_shared<Connection>(
        io, std::move(socket), options, bodies,
        [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
          api.handle(std::move(request), std::move(exchange));
        },
        [this, place] {
          std::lock_guard inner(mutex);
          open.erase(place);
          --open_count;
        });
    *place = connection;
  }
  full = full && !make_place();
  asio::post(connection->executor(), [connection, full] { full ? connection->refuse() : connection->start(); });
  accept();
}

// Ends the connection that has waited for its next request for longest, so that those of clients that are done with them keep
// nobody out. One that has only just begun to wait stays: its request may be on the way.
bool Server::Impl::make_place() {
  const auto all = connections();
  const auto longest = std::min_element(all.begin(), all.end(), [](const auto &a, const auto &b) { return a->idle_since() < b->idle_since(); });
  if (longest == all.end() || (*longest)->idle_since() > std::chrono::steady_clock::now() - kIdleToGiveWay)
    return false;
  (*longest)->give_way();
  return true;
}

std::vector<std::shared_ptr<Connection>> Server::Impl::connections() {
  std::vector<std::shared_ptr<Connection>> out;
  std::lock_guard lock(mutex);
  for (const auto &weak : open)
    if (auto connection = weak.lock())
      out.push_back(std::move(connection));
  return out;
}

// On the acceptor's strand. A second signal ends the grace that running requests have, unless it came with the first: `timeout`
// and shells send one to the process and one to its group.
void Server::Impl::begin_end(const std::string &why) {
  const auto now = std::chrono::steady_clock::now();
  if (ending) {
    if (now - end_began >= kSameSignal)
      end_of_grace = now;
    return;
  }
  ending = true;
  end_began = now;
  log_info(why + ": no new requests; " + std::to_string(api.running()) + " running");
  error_code ignored;
  acceptor.close(ignored);
  api.drain();
  engine.drain();
  for (const auto &connection : connections())
    asio::post(connection->executor(), [connection] { connection->drain(); });
  end_of_grace = now + options.drain_time;
  drain_step();
}

// Waits for running requests, then ends them, then gives up on clients that do not take their answers.
void Server::Impl::drain_step() {
  constexpr std::chrono::milliseconds kPatience{3000};
  const auto now = std::chrono::steady_clock::now();
  bool idle;
  {
    std::lock_guard lock(mutex);
    idle = open_count == 0 && api.running() == 0;
  }
  if (!idle && !told && now >= end_of_grace) {
    told = true;
    end_of_patience = now + kPatience;
    if (api.running() > 0)
      log_info("ending " + std::to_string(api.running()) + " requests that are still running");
    api.shut_down_running();
  }
  if (idle || (told && now >= end_of_patience)) {
    ended = true;
    signals.cancel();
    close_all();
    work.reset();
    return;
  }
  timer.expires_after(std::chrono::milliseconds(20));
  timer.async_wait([this](const error_code &) { drain_step(); });
}

void Server::Impl::close_all() {
  for (const auto &connection : connections())
    asio::post(connection->executor(), [connection] { connection->close(); });
}

Server::Server(Engine &engine, std::shared_ptr<const Model> model, ServerOptions options)
    : impl_(std::make_unique<Impl>(engine, std::move(model), with_descriptors(std::move(options)))) {
  impl_->endpoint = listen(impl_->acceptor, impl_->options);
}

Server::~Server() {
  // Sockets belong to the io_context, and what waits in it refers to connections: all of that ends here, before it.
  impl_->pool.join();
  impl_->api.disconnect();
  error_code ignored;
  impl_->acceptor.close(ignored);
  impl_->signals.cancel();
  impl_->timer.cancel();
  impl_->close_all();
  impl_->io->restart();
  impl_->io->poll();
}

uint16_t Server::port() const { return impl_->endpoint.port(); }

std::string Server::url() const {
  const auto address = impl_->endpoint.address();
  const std::string host = address.is_unspecified() ? "127.0.0.1" : address.to_string();
  return "http://" + (address.is_v6() && !address.is_unspecified() ? "[" + host + "]" : host) + ":" +
         std::to_string(port());
}

void Server::run() {
  Impl &s = *impl_;
  std::signal(SIGPIPE, SIG_IGN);
  s.work.emplace(s.io->get_executor());
  if (s.options.handle_signals) {
    s.signals.add(SIGTERM);
    s.signals.add(SIGINT);
    auto wait = std::make_shared<std::function<void()>>();
    *wait = [&s, weak = std::weak_ptr(wait)] {
      if (s.ended) // a signal that was on its way when the wait for it was cancelled: another wait would never end
        return;
      s.signals.async_wait([&s, again = weak.lock()](const error_code &error, int number) {
        if (error)
          return;
        // Wait for the next signal first: an idle server ends inside begin_end, which cancels that wait.
        (*again)();
        s.begin_end(number == SIGTERM ? "SIGTERM" : "SIGINT");
      });
    };
    (*wait)();
  }
  asio::post(s.acceptor.get_executor(), [&s] { s.accept(); });
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < s.options.io_threads; ++i)
    threads.emplace_back([&s] { s.io->run(); });
  s.io->run();
  for (auto &thread : threads)
    thread.join();
  log_info("stopped");
}

void Server::stop() {
  asio::post(impl_->acceptor.get_executor(), [s = impl_.get()] { s->begin_end("stop"); });
}

} // namespace llmrt::serve
