// What the sessions of a node share: the device with its slot, one CQ with its channel, one SRQ,
// and memory. A verb that refuses ends the role with a message to the parent. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/api.h"

namespace vrb::death {

constexpr std::uint32_t kSrqEntries = 32;
constexpr std::uint32_t kCqEntries = 128;
constexpr std::uint32_t kMessageBytes = 512;  // room for one message, the GRH included

// Tells the parent and ends the role; set by the node.
[[noreturn]] void fail(const std::string& text);
void set_failure_socket(int socket);

template <class T>
T need(ib::Result<T> result, const char* verb) {
  if (!result) {
    char cause[256];
    ib::format_cause(result.error().cause, cause, sizeof cause);
    fail(std::string(verb) + ": errno " + std::to_string(static_cast<int>(result.error().errc)) +
         ", " + cause);
  }
  if constexpr (!std::is_void_v<T>) return *result;
}

// Anonymous memory, registered for everything.
class Region {
 public:
  Region(engine::Pd* pd, std::size_t bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void withdraw();  // deregisters, keeps the memory
  std::byte* at(std::size_t offset) const { return base_ + offset; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }
  std::uint32_t rkey() const { return info_.rkey; }
  ib::Sge sge(std::size_t offset, std::size_t bytes) const {
    return {address() + offset, static_cast<std::uint32_t>(bytes), info_.lkey};
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_;
  engine::MrInfo info_;
};

class Nic {
 public:
  explicit Nic(std::uint32_t cq_entries);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  engine::Pd* pd() const { return pd_; }
  engine::Cq* cq() const { return cq_; }
  engine::Srq* srq() const { return srq_; }
  engine::Ah* this_host() const { return ah_; }
  int channel_fd() const { return engine::channel_fd(channel_); }

  // Posts buffers to the SRQ until it is full; returns how many were taken. wr_ids are buffer
  // numbers.
  std::uint32_t fill_srq();
  const std::byte* srq_buffer(std::uint64_t wr_id) const;
  void release_srq_buffer(std::uint64_t wr_id);
  std::uint32_t srq_posted() const { return posted_; }

  // Asks for the next completion event.
  void arm();
  // Takes the events that are there.
  void take_events();

 private:
  void take_slot();

  engine::Context* context_;
  engine::Pd* pd_;
  engine::Channel* channel_;
  engine::Cq* cq_;
  engine::Srq* srq_;
  engine::Ah* ah_;
  Region* buffers_;
  std::vector<std::uint32_t> free_;  // buffers of the SRQ that are not posted
  std::uint32_t posted_ = 0;
};

}  // namespace vrb::death
