// The bytes that sessions move, so that both ends can tell right from wrong. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vrb::death {

// Messages of a session arrive in three streams, each with its own order.
enum class Stream : std::uint32_t { Srq = 0, Own = 1, Ud = 2 };

// Layout of the target's region: where WRITEs go, and the words of the atomics. The initiator's:
// what it writes, then what it reads back.
constexpr std::size_t kWriteArea = 1 << 20;
constexpr std::size_t kFetchAddWord = kWriteArea;
constexpr std::size_t kCompareSwapWord = kWriteArea + 64;
constexpr std::size_t kImmArea = kWriteArea + 4096;
constexpr std::size_t kImmBytes = 128;
// One place for each that can lie there unseen: more than the SRQ has entries.
constexpr std::size_t imm_place(std::uint64_t number) { return kImmArea + number % 64 * kImmBytes; }
constexpr std::size_t kReadBack = kWriteArea;
constexpr std::size_t kScratch = 2 * kWriteArea;  // initiator: message to send, results of atomics
constexpr std::size_t kRegionBytes = 2 * kWriteArea + (64 << 10);
constexpr std::size_t kLongBytes = 700'000;  // longer than a slice of the engine

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed);

// How many bytes the WRITE of a round moves.
std::size_t write_bytes(std::uint32_t round, bool with_long);

struct MessageHead {
  std::uint64_t number = 0;  // within its stream
  std::uint32_t session = 0;
  std::uint32_t stream = 0;
};
constexpr std::size_t kPayloadBytes = 200;  // behind the head
constexpr std::size_t kWholeBytes = sizeof(MessageHead) + kPayloadBytes;

void write_message(std::byte* at, const MessageHead& head);
// Is it a whole message of that session and stream? Gives its number.
bool read_message(const std::byte* at, std::uint32_t session, Stream stream, std::uint64_t& number);

}  // namespace vrb::death
