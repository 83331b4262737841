// SPDX-License-Identifier: Apache-2.0
#include "queue/own_cq.h"

#include <algorithm>

namespace vrb::queue {
namespace {

constexpr std::size_t kFirstSize = 16;

}  // namespace

void OwnCq::grow() {
  std::vector<OwnCqe> larger(std::max(kFirstSize, ring_.size() * 2));
  for (std::size_t i = 0; i < count_; ++i) larger[i] = at(head_ + i);
  ring_ = std::move(larger);
  head_ = 0;
}

void OwnCq::push(const OwnCqe& cqe) {
  if (count_ == ring_.size()) grow();
  at(head_ + count_++) = cqe;
}

std::optional<OwnCqe> OwnCq::pop() {
  if (count_ == 0) return std::nullopt;
  --count_;
  return at(head_++);
}

void OwnCq::purge(std::uint16_t qp) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const OwnCqe& cqe = at(head_ + i);
    if (cqe.qp == qp) continue;
    if (kept != i) at(head_ + kept) = cqe;
    ++kept;
  }
  count_ = kept;
}

}  // namespace vrb::queue
