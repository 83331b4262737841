// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <cstring>

namespace vrb::death {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 29);
}

std::byte byte_at(std::uint64_t seed, std::size_t i) {
  return static_cast<std::byte>(mix(seed * 0x1000003 + i / 8) >> (i % 8 * 8));
}

std::uint64_t seed_of(const MessageHead& head) {
  return mix(head.number * 4 + head.stream) + head.session;
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(seed, i);
}

bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(seed, i)) return false;
  }
  return true;
}

std::size_t write_bytes(std::uint32_t round, bool with_long) {
  if (with_long && round % 16 == 7) return kLongBytes;
  constexpr std::size_t kSizes[] = {8, 1, 64, 100, 4096, 9000};
  return kSizes[round % std::size(kSizes)];
}

void write_message(std::byte* at, const MessageHead& head) {
  std::memcpy(at, &head, sizeof head);
  fill_pattern({at + sizeof head, kPayloadBytes}, seed_of(head));
}

bool read_message(const std::byte* at, std::uint32_t session, Stream stream,
                  std::uint64_t& number) {
  MessageHead head;
  std::memcpy(&head, at, sizeof head);
  number = head.number;
  return head.session == session && head.stream == static_cast<std::uint32_t>(stream) &&
         has_pattern({at + sizeof head, kPayloadBytes}, seed_of(head));
}

}  // namespace vrb::death
