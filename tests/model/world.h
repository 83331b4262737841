// What the model knows of the ranks' objects: regions, queues, queue pairs, and what each still
// owes. Plain values, changed by the Model only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ib/cause.h"
#include "ib/limits.h"
#include "protocol.h"
#include "shadow.h"

namespace vrb::model {

// Something came out other than the model says.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : engine_() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  std::uint64_t bits() { return engine_(); }
  template <class T>
  T& one_of(std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Orders for one rank, and what to do with the outcome of each.
struct Orders {
  struct Expected {
    std::string what;
    int error = 0;
    std::uint32_t* values[2] = {};
  };
  Message message;
  std::vector<Expected> expected;

  template <class T>
  Expected& add(Verb verb, const T& order) {
    message.put(verb);
    message.put(order);
    return expected.emplace_back(Expected{"verb " + std::to_string(static_cast<int>(verb)), 0, {}});
  }
};

struct Region {
  bool live = false;
  bool frozen = false;      // changes in this round, so nothing may use it
  bool base = false;        // keeps its place and rights, so that there is always one of its kind
  std::uint32_t users = 0;  // receives that lie in it, and work requests of this round
  std::uint32_t pd = 0, access = 0, lkey = 0, rkey = 0;
  std::uint64_t offset = 0, length = 0, iova = 0;
};

struct Recv {
  std::uint64_t id = 0, capacity = 0;
  std::vector<Range> ranges;
  std::vector<std::uint32_t> regions;
  bool bad_key = false;
};

// On its way to a receive: what its completion must say and which bytes it brings.
struct Inbound {
  ib::WcStatus status = ib::WcStatus::Success;
  ib::WcOpcode opcode = ib::WcOpcode::Recv;
  std::uint32_t byte_len = 0, imm = 0;
  bool has_imm = false;
  std::vector<std::byte> payload;
  std::string what;
};

// A completion that the send queue owes.
struct Sent {
  std::uint64_t id = 0;
  ib::WcStatus status = ib::WcStatus::Success;
  ib::WcOpcode opcode = ib::WcOpcode::Send;
  std::uint32_t byte_len = 0;  // told for what fetches
  ib::CauseCode cause = ib::CauseCode::None;
  std::string what;
};

struct Endpoint {
  std::uint32_t id = 0, node = 0;  // id: also the index of the QP at its rank, and its queue number
  ib::QpType type = ib::QpType::Rc;
  std::uint32_t pd = 0, send_cq = 0, recv_cq = 0, qpn = 0, qkey = 0, access = 0;
  bool srq = false, sig_all = false;
  nic::QpCap cap;
  std::uint8_t rnr_retry = 7;
  Endpoint* peer = nullptr;  // RC, UC

  bool exists = false, connected = false;
  bool broken = false;      // in ERR or next to one that is: to be reset
  bool send_error = false;  // in SQE
  bool orphan = false;      // RC: the next connection has no other side
  std::deque<Recv> rq;
  std::deque<Sent> sent;
  std::map<std::uint32_t, std::deque<Inbound>> inbox;  // by the QPN of the sender

  // This round.
  std::uint32_t budget = 0, posted = 0, fault_at = 0;  // fault_at: when so many were posted
  bool failed = false;                                 // what is posted now is flushed
  bool flushes = false;                                // its receive queue
  bool late = false;  // receives are posted while senders are under way
  struct Unsignalled {
    Sent sent;
    std::size_t flags_at = 0;  // in the orders
    std::uint8_t flags = 0;
  };
  std::optional<Unsignalled> unsignalled;  // posted last

  std::uint16_t queue() const { return static_cast<std::uint16_t>(id + 1); }
  std::size_t owed() const {
    std::size_t n = 0;
    for (const auto& [sender, messages] : inbox) n += messages.size();
    return n;
  }
};

struct Queue {  // a CQ
  std::uint32_t cqe = 0;
  enum class Armed : std::uint8_t { No, Solicited, Any } armed = Armed::No;
  bool any = false, solicited = false;  // owes a completion, one that such an arming waits for
};

// A fetch-and-add by several queues at a time: who saw which value is free, within the sum.
struct Contended {
  std::uint32_t owner = 0, node = 0;
  std::uint64_t counter = 0, add = 0, into = 0;  // offsets in the arenas of owner and node
};

struct Node {
  std::uint32_t index = 0;
  bool sleeps = false;
  Greeting greeting;
  Shadow shadow;
  std::vector<Region> regions;
  std::vector<std::uint32_t> old_keys, retired_keys;  // retired: in this round
  std::vector<Queue> cqs;
  std::uint32_t srq_pd = 0, srq_sges = 0, srq_limit = 0;
  std::deque<Recv> srq;
  std::uint64_t srq_newest_taken = 0;  // id of the youngest receive that was used
  std::uint32_t srq_promised = 0;      // messages of this round
  std::uint64_t next_id = 1;
  std::uint32_t awaited = 0;                   // completions
  std::vector<AsyncHarvested> events;          // asynchronous events that must come
  std::vector<std::uint32_t> expected_events;  // CQs whose event must come, ascending
  Orders prepare, go;
};

}  // namespace vrb::model
