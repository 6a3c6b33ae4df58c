// See http_client.h.
#include "test/unit/serve/http_client.h"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace llmrt::test {

std::vector<std::string> Reply::events() const {
  std::vector<std::string> out;
  for (size_t at = 0; at < body.size();) {
    size_t end = body.find("\n\n", at);
    if (end == std::string::npos) {
      out.push_back("UNFINISHED " + body.substr(at));
      break;
    }
    std::string event = body.substr(at, end - at);
    out.push_back(event.rfind("data: ", 0) == 0 ? event.substr(6) : "NO DATA " + event);
    at = end + 2;
  }
  return out;
}

Client::Client(uint16_t port, int receive_buffer) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer)
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
    close();
}

Client::~Client() { close(); }

void Client::close() {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
}

void Client::half_close() { shutdown(fd_, SHUT_WR); }

bool Client::send(const std::string &bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0)
      return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool Client::fill(std::chrono::milliseconds patience) {
  pollfd poller{fd_, POLLIN, 0};
  if (fd_ < 0 || poll(&poller, 1, static_cast<int>(patience.count())) <= 0)
    return false;
  if (pause_.count() > 0)
    std::this_thread::sleep_for(pause_);
  std::vector<char> bytes(piece_);
  ssize_t n = recv(fd_, bytes.data(), bytes.size(), 0);
  if (n <= 0)
    return false;
  buffer_.append(bytes.data(), static_cast<size_t>(n));
  return true;
}

bool Client::wait_for(const std::string &text, std::chrono::milliseconds patience) {
  while (buffer_.find(text) == std::string::npos)
    if (!fill(patience))
      return false;
  return true;
}

bool Client::closed_within(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    pollfd poller{fd_, POLLIN, 0};
    if (poll(&poller, 1, 20) <= 0)
      continue;
    char bytes[16384];
    if (recv(fd_, bytes, sizeof bytes, 0) <= 0)
      return true;
  }
  return false;
}

Reply Client::receive(std::chrono::milliseconds patience, bool head) {
  Reply reply;
  do {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!fill(patience))
        return reply;
    std::string text = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    reply.status = std::atoi(text.c_str() + std::min<size_t>(9, text.size()));
    for (size_t at = text.find("\r\n"); at != std::string::npos;) {
      size_t next = text.find("\r\n", at + 2);
      std::string line = text.substr(at + 2, next == std::string::npos ? next : next - at - 2);
      size_t colon = line.find(": ");
      std::string name = line.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      reply.headers[name] = colon == std::string::npos ? "" : line.substr(colon + 2);
      at = next;
    }
  } while (reply.status == 100);
  if (head || reply.status == 204) {
    reply.whole = true;
  } else if (reply.headers.count("content-length")) {
    const auto length = static_cast<size_t>(std::stoull(reply.headers["content-length"]));
    while (buffer_.size() < length)
      if (!fill(patience))
        break;
    reply.whole = buffer_.size() >= length;
    reply.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
  } else if (reply.headers.count("transfer-encoding")) {
    while (true) {
      size_t line;
      while ((line = buffer_.find("\r\n")) == std::string::npos)
        if (!fill(patience))
          return reply;
      const auto length = static_cast<size_t>(std::stoull(buffer_.substr(0, line), nullptr, 16));
      while (buffer_.size() < line + 2 + length + 2)
        if (!fill(patience))
          return reply;
      reply.body += buffer_.substr(line + 2, length);
      buffer_.erase(0, line + 2 + length + 2);
      if (length == 0) {
        reply.whole = true;
        break;
      }
    }
  } else {
    while (fill(patience)) {
    }
    reply.body.swap(buffer_);
    reply.whole = true;
  }
  return reply;
}

std::string Client::post_text(const std::string &path, const std::string &body, const std::string &headers) {
  return "POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Reply Client::post(const std::string &path, const std::string &body, const std::string &headers) {
  send(post_text(path, body, headers));
  return receive();
}

Reply Client::get(const std::string &path, const std::string &headers, const std::string &method) {
  send(method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n");
  return receive(std::chrono::seconds(20), method == "HEAD");
}

} // namespace llmrt::test
