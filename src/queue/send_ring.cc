// SPDX-License-Identifier: Apache-2.0
#include "queue/send_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vrb::queue {

SendRing::SendRing(std::uint32_t capacity, std::uint32_t max_sge, std::uint32_t max_inline)
    : capacity_(capacity), max_sge_(max_sge), max_inline_(max_inline) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(capacity, 1));
  mask_ = slots - 1;
  wqes_.resize(slots);
  sges_.resize(slots * max_sge);
  inline_.resize(slots * max_inline);
}

SendWqe& SendRing::push(const SendRequest& request, std::uint32_t length) {
  const std::uint64_t position = posted_++;
  SendWqe& wqe = wqes_[position & mask_];
  wqe.request = request;
  wqe.request.sges = {};
  wqe.length = length;
  wqe.flushed = false;
  wqe.is_inline = (request.flags & ib::kSendInline) != 0;
  if (wqe.is_inline) {
    copy_inline(wqe, position, request);
  } else if (const auto count = std::min<std::size_t>(request.sges.size(), max_sge_); count != 0) {
    ib::Sge* const copy = sges_.data() + (position & mask_) * max_sge_;
    std::copy_n(request.sges.begin(), count, copy);
    wqe.request.sges = {copy, count};
  }
  return wqe;
}

void SendRing::copy_inline(SendWqe& wqe, std::uint64_t position, const SendRequest& request) {
  std::size_t used = 0;
  for (const ib::Sge& sge : request.sges) {
    const std::size_t part = std::min<std::size_t>(sge.length, max_inline_ - used);
    if (part != 0) {
      std::memcpy(inline_area(position) + used, reinterpret_cast<const void*>(sge.addr), part);
    }
    used += part;
  }
  wqe.length = static_cast<std::uint32_t>(used);
}

std::span<const std::byte> SendRing::inline_bytes(const SendWqe& wqe) const {
  if (!wqe.is_inline) return {};
  const auto index = static_cast<std::size_t>(&wqe - wqes_.data());
  return {inline_.data() + index * max_inline_, wqe.length};
}

void SendRing::release(std::uint64_t position) {
  std::uint64_t seen = released_.value.load(std::memory_order_relaxed);
  while (seen < position) {
    if (released_.value.compare_exchange_weak(seen, position, std::memory_order_release,
                                              std::memory_order_relaxed)) {
      return;
    }
  }
}

void SendRing::reset() {
  done_ = posted_;
  release(posted_);
  for (SendWqe& wqe : wqes_) wqe = {};
}

}  // namespace vrb::queue
