// The HTTP/1.1 server around the API: listening, threads, limits, and an orderly end on SIGTERM or SIGINT.
#pragma once

#include "runtime/sched/engine.h"
#include "runtime/serve/model.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace llmrt::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  ///< 0: any free one
  std::string api_key;   ///< empty: none is asked for
  std::string version;   ///< what /version says
  std::string metrics_prefix = "llmrt:"; ///< see ApiOptions
  unsigned io_threads = 2, pool_threads = 2;
  size_t max_connections = 2048;
  uint32_t max_header_bytes = 32 << 10; ///< 431 beyond
  size_t max_body_bytes = 16 << 20;     ///< 413 beyond
  size_t max_bodies_bytes = 1 << 30;    ///< of all connections, until they are read, and at least one; 503 beyond
  std::chrono::milliseconds header_timeout{15'000}; ///< from a request's first byte to the end of its header
  std::chrono::milliseconds body_timeout{60'000};   ///< for the rest of it
  std::chrono::milliseconds idle_timeout{75'000};   ///< between requests of a connection
  std::chrono::milliseconds write_timeout{60'000};  ///< for a client to take a piece of what was sent
  size_t max_pending_bytes = 8 << 20; ///< of a stream that its client does not read; then the connection ends
  std::chrono::milliseconds drain_time{4'000}; ///< that running requests get after SIGTERM
  double stall_seconds = 300; ///< see ApiOptions
  bool handle_signals = true;
};

/// Throws llmrt::Error with the address where a server could not listen now; to be asked before anything that takes long.
void check_address(const ServerOptions &options);

class Server {
public:
  /// Listens. Throws llmrt::Error with the address when that is not possible. The engine must outlive the server.
  Server(Engine &engine, std::shared_ptr<const Model> model, ServerOptions options);
  ~Server();

  uint16_t port() const;    ///< that it listens on
  std::string url() const;  ///< "http://127.0.0.1:8000"

  /// Serves until SIGTERM, SIGINT or stop(); then refuses new requests, lets running ones finish for drain_time,
  /// ends the rest, and returns.
  void run();
  /// Ends run(), from any thread.
  void stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace llmrt::serve
