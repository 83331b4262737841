// The send queue of a QP: private to its owner, nothing of it is in NIC memory. Needs the QP's SQ
// lock, except release(), which a poller calls under its CQ lock. Movable while no other thread
// uses it.
//
// Positions count up for ever: released <= done <= posted. A slot is free again when a completion
// at or behind it has been polled (IBTA 10.8.5.1), so unsignalled WQEs keep their slots until a
// later signalled one is polled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ib/types.h"

namespace vrb::queue {

// A send work request as the engine takes it (one ibv_send_wr).
struct SendRequest {
  std::uint64_t wr_id = 0;
  ib::Opcode opcode = ib::Opcode::Send;
  std::uint8_t flags = 0;  // ib::kSend*
  std::uint32_t imm = 0;   // network order, untouched
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0, swap = 0;
  const void* ah = nullptr;  // UD: a nic::Ah
  std::uint32_t remote_qpn = 0, remote_qkey = 0;
  std::span<const ib::Sge> sges;
};

// A WQE in the ring: the request with its own copy of SGEs or inline bytes.
struct SendWqe {
  SendRequest request;       // request.sges: the ring's copy; empty when inline
  std::uint32_t length = 0;  // bytes of the message
  bool is_inline = false;
  bool flushed = false;
};

class SendRing {
 public:
  SendRing() = default;
  // capacity in WQEs, sges per WQE, inline bytes per WQE.
  SendRing(std::uint32_t capacity, std::uint32_t max_sge, std::uint32_t max_inline);

  bool full() const {
    return posted_ - released_.value.load(std::memory_order_acquire) >= capacity_;
  }
  // Copies the request in (inline data by value) and returns the WQE. Not to be called when full().
  SendWqe& push(const SendRequest& request, std::uint32_t length);
  bool idle() const { return done_ == posted_; }
  SendWqe& front() { return wqes_[done_ & mask_]; }  // the oldest WQE not yet done
  void advance() { ++done_; }  // front() is done (completed or not to be completed)
  std::uint64_t done() const { return done_; }
  std::uint64_t posted() const { return posted_; }
  // Slots below `position` are free. Any thread; never goes back.
  void release(std::uint64_t position);
  // All empty (RESET). Positions go on, so that a completion polled late releases nothing new.
  void reset();
  std::uint32_t capacity() const { return capacity_; }
  // The inline bytes of a WQE as one SGE-like span.
  std::span<const std::byte> inline_bytes(const SendWqe& wqe) const;

 private:
  // An atomic that moves with its ring.
  struct Position {
    std::atomic<std::uint64_t> value{0};
    Position() = default;
    Position(Position&& from) noexcept : value(from.value.load(std::memory_order_relaxed)) {}
    Position& operator=(Position&& from) noexcept {
      value.store(from.value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return *this;
    }
  };
  std::byte* inline_area(std::uint64_t position) {
    return inline_.data() + (position & mask_) * max_inline_;
  }
  void copy_inline(SendWqe& wqe, std::uint64_t position, const SendRequest& request);

  std::uint32_t capacity_ = 0, max_sge_ = 0, max_inline_ = 0;
  std::uint64_t mask_ = 0, posted_ = 0, done_ = 0;
  Position released_;
  std::vector<SendWqe> wqes_;
  std::vector<ib::Sge> sges_;
  std::vector<std::byte> inline_;
};

}  // namespace vrb::queue
