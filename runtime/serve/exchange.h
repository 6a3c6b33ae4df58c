// One HTTP request and the way back to its client, free of sockets: what the API works with, and what tests fake.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llmrt::serve {

struct HttpRequest {
  std::string method;
  std::string path; ///< without the query, not yet percent-decoded
  std::string authorization;
  std::string wanted_headers; ///< those that a browser asks leave to send (Access-Control-Request-Headers)
  std::string body;
  std::shared_ptr<void> lease; ///< of the memory that the body takes; to be let go with it
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers; ///< beyond those of every answer
  std::string content_type = "application/json";
};

/// All members may be called from any thread. After the client is gone, or after finish, calls do nothing.
class Exchange {
public:
  virtual ~Exchange() = default;
  virtual void respond(HttpResponse response) = 0; ///< the whole answer
  virtual void start_stream() = 0;                 ///< 200 and the headers of an event stream
  virtual void write(std::string data) = 0;        ///< more of the stream
  virtual void finish() = 0;                       ///< the stream's end
  /// Called once, on the connection's own sequence, if the client goes away before the answer is complete.
  virtual void on_gone(std::function<void()> callback) = 0;
  /// Runs `work` on the connection's own sequence: never at the same time as other work of this exchange.
  virtual void post(std::function<void()> work) = 0;
};

} // namespace llmrt::serve
