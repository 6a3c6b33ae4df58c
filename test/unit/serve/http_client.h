// A blocking HTTP client on bare sockets, so that tests can also send what no honest client would.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llmrt::test {

struct Reply {
  int status = 0; ///< 0: the connection ended before an answer
  std::map<std::string, std::string> headers; ///< names in lower case
  std::string body;                           ///< chunks joined
  bool whole = false;                         ///< the body ended as announced
  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(body); }
  /// The payloads of a stream's events, "[DONE]" included.
  std::vector<std::string> events() const;
};

class Client {
public:
  explicit Client(uint16_t port, int receive_buffer = 0);
  ~Client();
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  bool send(const std::string &bytes);
  /// Reads one answer, waiting so long for each piece of it.
  Reply receive(std::chrono::milliseconds patience = std::chrono::seconds(20), bool head = false);
  /// Reads until `text` has come; false at the end of the connection or of patience.
  bool wait_for(const std::string &text, std::chrono::milliseconds patience = std::chrono::seconds(20));
  /// True if the server closes (or resets) the connection in time.
  bool closed_within(std::chrono::milliseconds patience);
  /// From now on reads so many bytes at most, with a pause before each read.
  void read_slowly(size_t bytes, std::chrono::milliseconds pause) { piece_ = bytes, pause_ = pause; }
  void half_close();
  void close();

  Reply post(const std::string &path, const std::string &body, const std::string &headers = {});
  Reply get(const std::string &path, const std::string &headers = {}, const std::string &method = "GET");

  static std::string post_text(const std::string &path, const std::string &body, const std::string &headers = {});

private:
  bool fill(std::chrono::milliseconds patience); ///< more bytes into buffer_
  int fd_ = -1;
  size_t piece_ = 16384;
  std::chrono::milliseconds pause_{0};
  std::string buffer_;
};

} // namespace llmrt::test
