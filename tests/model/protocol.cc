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
  std::byte* at = memory.data();
  std::byte* const end = at + memory.size();
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  while (at != end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::uint64_t word = state * 0x2545f4914f6cdd1dULL;
    if (end - at >= 8) {
      std::memcpy(at, &word, 8);
      at += 8;
      continue;
    }
    for (; at != end; word >>= 8) *at++ = static_cast<std::byte>(word);
  }
}

// Volatile, so that it does not become a call of memcpy, into which ThreadSanitizer looks.
void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  auto* out = reinterpret_cast<volatile std::uint64_t*>(to);
  const auto* in = reinterpret_cast<const volatile std::uint64_t*>(from);
  for (std::size_t i = 0; i < bytes / 8; ++i) out[i] = in[i];
}

}  // namespace vrb::model
