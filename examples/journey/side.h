// One process of the journey: its device, memory, CQ and RC QP, with each call reported with its
// time; and the socket over which the two processes meet. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record.h"

namespace journey {

constexpr std::size_t kBytes = 4096;
constexpr std::uint64_t kRecvId = 7;
constexpr std::uint64_t kWriteId = 42;
constexpr std::uint32_t kImmediate = 2026;

struct Address {
  ibv_gid gid;
  std::uint32_t qpn, rkey;
  std::uint64_t buffer;
};

class Side {
 public:
  Side(Reporter& reporter, int peer);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Step 1: register memory, create the QP, learn the other side's address, connect.
  void prepare();
  // Returns when the other side has come here, too.
  void meet();

  // The next completion; `at` is when it was found.
  ibv_wc wait(std::int64_t& at);
  ibv_qp_state state();

  char* memory() { return memory_.data(); }
  const Address& remote() const { return remote_; }
  ibv_context* context() { return context_; }
  ibv_cq* cq() { return cq_; }
  ibv_mr* mr() { return mr_; }
  ibv_qp* qp() { return qp_; }

 private:
  void open();
  void connect();
  Address exchange(const Address& own);
  void modify(ibv_qp_attr& attr, ibv_qp_state state, int mask);

  Reporter& report_;
  int peer_;
  std::vector<char> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  Address own_ = {}, remote_ = {};
};

const char* state_name(ibv_qp_state state);

// The two roles; each does all journeys and ends. `peer` leads to the other process.
void run_sender(Reporter& reporter, int peer);
void run_receiver(Reporter& reporter, int peer);

}  // namespace journey
