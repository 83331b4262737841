// TCP over loopback the way perftest uses RDMA: both ends spin on a non-blocking receive and never
// sleep. tcp_ping -p PORT -s BYTES -n ROUNDS [HOST]; the client prints half the median round trip
// in ns.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Options {
  std::uint16_t port = 18516;
  std::size_t bytes = 8;
  std::size_t rounds = 100000;
  std::string host;  // empty: the server
};

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int letter; (letter = getopt(argc, argv, "p:s:n:")) != -1;) {
    const char* text = optarg == nullptr ? "" : optarg;
    const unsigned long value = std::strtoul(text, nullptr, 10);
    if (letter == '?' || value == 0)
      throw std::runtime_error("usage: tcp_ping [-p PORT] [-s BYTES] [-n ROUNDS] [HOST]");
    if (letter == 'p') options.port = static_cast<std::uint16_t>(value);
    if (letter == 's') options.bytes = value;
    if (letter == 'n') options.rounds = value;
  }
  if (optind < argc) options.host = argv[optind];
  return options;
}

int connected(const Options& options) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(options.port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = reinterpret_cast<const sockaddr*>(&at);
  if (!options.host.empty()) {
    if (inet_pton(AF_INET, options.host.c_str(), &at.sin_addr) != 1) fail("inet_pton");
    if (connect(fd, address, sizeof at) != 0) fail("connect");
    return fd;
  }
  if (bind(fd, address, sizeof at) != 0) fail("bind");
  if (listen(fd, 1) != 0) fail("listen");
  const int peer = accept(fd, nullptr, nullptr);
  if (peer < 0) fail("accept");
  close(fd);
  return peer;
}

void send_all(int fd, const std::vector<char>& message) {
  for (std::size_t done = 0; done < message.size();) {
    const ssize_t n =
        send(fd, message.data() + done, message.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) fail("send");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

// False at the end of the stream.
bool receive_all(int fd, std::vector<char>& message) {
  for (std::size_t done = 0; done < message.size();) {
    const ssize_t n = recv(fd, message.data() + done, message.size() - done, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0 && errno != EAGAIN) fail("recv");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return true;
}

void run(const Options& options) {
  const int fd = connected(options);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<char> message(options.bytes);
  if (options.host.empty()) {
    while (receive_all(fd, message)) send_all(fd, message);
    return;
  }
  std::vector<double> halves(options.rounds);
  for (double& half : halves) {
    const auto start = std::chrono::steady_clock::now();
    send_all(fd, message);
    if (!receive_all(fd, message)) throw std::runtime_error("the server has gone");
    half =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
        2;
  }
  std::nth_element(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2),
                   halves.end());
  std::printf("median %.1f ns\n", halves[halves.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tcp_ping: %s\n", error.what());
    return 1;
  }
}
