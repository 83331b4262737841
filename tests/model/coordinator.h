// Runs the model against real ranks: starts their processes, carries orders and outcomes, and looks
// at their memory. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model.h"

namespace vrb::model {

struct Layout {
  std::vector<std::uint32_t> process_of;  // of each rank; numbers from 0 on
  bool cma = true;                        // false: the kernel refuses process_vm_*
};

class Coordinator {
 public:
  explicit Coordinator(const Layout& layout);
  ~Coordinator();  // ends the processes, whatever they do
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Returns what was done, in words. Throws Mismatch, with the round in its words.
  std::string run(std::uint64_t seed, std::uint64_t operations);

 private:
  struct Link {
    int socket = -1;        // ours
    int their_socket = -1;  // until it is given away
    int memfd = -1;
    bool shares = false;
    std::span<const std::byte> memory;
  };
  void open_link(Link& link, std::size_t rank);
  void spawn(std::uint32_t process);
  void carry(Orders Node::*orders, bool judges);
  void look();
  void round();
  void part();

  Layout layout_;
  std::vector<Link> links_;
  std::vector<pid_t> children_;
  std::unique_ptr<Model> model_;
  std::uint64_t rounds_ = 0;
};

}  // namespace vrb::model
