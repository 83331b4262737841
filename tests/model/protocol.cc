// SPDX-License-Identifier: Apache-2.0
#include "protocol.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace vrb::model {
namespace {

std::runtime_error failure(const char* what) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

ssize_t take(int socket, std::span<std::byte> into, int flags) {
  ssize_t n = 0;
  do {
    n = recv(socket, into.data(), into.size(), flags);
  } while (n < 0 && errno == EINTR);
  if (n < 0) throw failure("receiving from the other end failed");
  if (n == 0) throw std::runtime_error("the other end is gone");
  return n;
}

}  // namespace

void send_message(int socket, const Message& message) {
  const auto bytes = message.bytes();
  ssize_t sent = 0;
  do {
    sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent != static_cast<ssize_t>(bytes.size())) throw failure("sending to the other end failed");
}

Message receive_message(int socket) {
  std::byte none{};
  const ssize_t length = take(socket, {&none, 1}, MSG_PEEK | MSG_TRUNC);
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  take(socket, bytes, 0);
  return Message(std::move(bytes));
}

void fill(std::span<std::byte> memory, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::size_t i = 0; i < memory.size(); i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const std::uint64_t word = state * 0x2545f4914f6cdd1dULL;
    std::memcpy(memory.data() + i, &word, std::min<std::size_t>(8, memory.size() - i));
  }
}

}  // namespace vrb::model
