// The private half of a completion queue: completions of our own send queues and flushes, which no
// peer can disturb. A plain growing ring, bounded by the CQ's capacity. Needs the CQ lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "queue/shared_cq.h"

namespace vrb::queue {

struct OwnCqe {
  std::uint64_t wr_id = 0;
  std::uint64_t sq_release =
      0;  // a send: the SQ position after this WQE; slots below are free once polled
  std::uint16_t qp = 0;
  bool is_send = false;
  bool wr_id_known = true;  // false: a receive moved over from the shared ring, body.wqe tells
  CqeBody body;
};

class OwnCq {
 public:
  void push(const OwnCqe& cqe);
  std::optional<OwnCqe> pop();
  std::size_t size() const { return count_; }
  // Removes every completion of `qp` (ibv_destroy_qp, RESET), keeping the order of the others;
  // calls nothing for them.
  void purge(std::uint16_t qp);

 private:
  OwnCqe& at(std::size_t i) { return ring_[i & (ring_.size() - 1)]; }
  void grow();

  std::vector<OwnCqe> ring_;  // size is a power of two, grows by doubling
  std::size_t head_ = 0, count_ = 0;
};

}  // namespace vrb::queue
