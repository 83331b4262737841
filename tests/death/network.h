// A network namespace of the test's own, in which only a few slots are free, so that a new process
// soon gets the slot of one that has just died. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace vrb::death {

class PrivateNetwork {
 public:
  // Leaves `free_slots` slots free. Without the right to make a namespace nothing changes.
  explicit PrivateNetwork(std::uint32_t free_slots);
  ~PrivateNetwork();
  PrivateNetwork(const PrivateNetwork&) = delete;
  PrivateNetwork& operator=(const PrivateNetwork&) = delete;
  bool made() const { return made_; }

 private:
  void occupy(std::uint32_t free_slots);

  int former_ = -1;
  bool made_ = false;
  std::vector<int> ports_;
};

}  // namespace vrb::death
