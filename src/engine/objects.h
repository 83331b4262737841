// The engine's objects behind the handles of api.h. Each belongs to the engine (Engine::registry)
// from create to destroy. Locks, always taken in this order: a QP's `sq_lock`, a CQ's `lock`, a
// receive queue's `lock`, a channel's or event queue's mutex. Nobody waits for a lane (grace
// period) while inside one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/lock.h"
#include "engine/api.h"
#include "local/nic_memory.h"
#include "local/peer.h"
#include "local/transfer.h"
#include "queue/own_cq.h"
#include "queue/recv_ring.h"
#include "queue/send_ring.h"
#include "queue/shared_cq.h"

namespace vrb::engine {

class Engine;

// Counts what was handed to the program and not acknowledged; destroy waits for it
// (ibv_destroy_cq(3), ibv_destroy_qp(3)).
class Unacknowledged {
 public:
  void add();
  void remove(unsigned n);
  void wait_for_none();

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  unsigned count_ = 0;
};

// A queue of events behind a descriptor that is readable once per event. Any thread.
template <class T>
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  int fd() const { return fd_; }
  void push(const T& event);
  // Blocks unless the program made the descriptor non-blocking: then empty with errno EAGAIN; empty
  // on any other error of read(2) too. `taken` runs under the queue's lock, so that a purge never
  // misses an event that is being handed out.
  template <class F>
  bool pop(T& event, F taken);
  template <class P>
  void purge(P matches);
  void close_fd();

 private:
  int fd_ = -1;
  std::mutex mutex_;
  std::deque<T> events_;
};

class Context {
 public:
  Context(Engine& e, void* h) : engine(e), handle(h) {}
  Engine& engine;
  void* handle;
  EventQueue<AsyncEvent> events;
};

class Pd {
 public:
  Pd(Context& c, ib::Pdn n) : context(c), number(n) {}
  Context& context;
  ib::Pdn number;
  std::atomic<std::uint32_t> uses{0};
};

class Mr {
 public:
  Pd* pd = nullptr;
  std::uint64_t addr = 0, length = 0, iova = 0;
  std::uint32_t access = 0, key = 0;
};

class Ah {
 public:
  Pd* pd = nullptr;
  nic::AddressVector av;
  bool local = false;  // the destination is on this host
  bool multicast = false;

  // The program holds it, and each work request that still needs it.
  void hold() const { holders_.fetch_add(1, std::memory_order_relaxed); }
  void drop() const {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<std::uint32_t> holders_{1};
};

class Channel {
 public:
  explicit Channel(Context& c) : context(c) {}
  Context& context;
  EventQueue<Cq*> events;
  std::atomic<std::uint32_t> uses{0};
};

class Cq {
 public:
  Cq(Context& c, Channel* ch, void* h) : context(c), channel(ch), handle(h) {}
  Context& context;
  Channel* channel;
  void* handle;
  std::uint32_t index = 0;
  std::uint32_t capacity = 0;
  local::Piece piece;  // of shared NIC memory
  base::SpinLock lock;
  queue::SharedCqConsumer shared VRB_GUARDED_BY(lock);
  queue::OwnCq own VRB_GUARDED_BY(lock);
  bool overrun VRB_GUARDED_BY(lock) = false;
  std::atomic<std::uint32_t> uses{0};
  Unacknowledged completion_events, async_events;
};

// The receive queue of a QP or an SRQ.
class RecvQueue {
 public:
  base::SpinLock lock;
  queue::RecvPoster poster VRB_GUARDED_BY(lock);
  local::Piece table, claims;
  bool closed VRB_GUARDED_BY(lock) = false;  // the QP is in ERR: posts are flushed at once
};

class Srq {
 public:
  Srq(Pd& p, void* h) : pd(p), handle(h) {}
  Pd& pd;
  void* handle;
  std::uint32_t index = 0;
  RecvQueue rq;
  SrqAttr attr;
  std::atomic<std::uint32_t> limit{0};
  std::atomic<std::uint32_t> uses{0};
  Unacknowledged async_events;
};

// Where the oldest WQE of a send queue stands, between two calls that carry it on.
struct InFlight {
  enum class Wait : std::uint8_t { None, Peer, Rnr, Assist, Slice, Room };
  bool started = false;    // the local checks are done, `local` is filled
  bool data_done = false;  // WRITE_WITH_IMM: the bytes are there, the receive WQE comes next
  bool claimed = false;    // a receive entry is ours
  Wait wait = Wait::None;
  std::uint8_t rnr_left = 0;
  std::uint64_t position = 0;              // of the claimed entry
  std::uint64_t ring_at = 0, ring_id = 0;  // of the queue that it is in
  std::uint64_t offset = 0;                // bytes moved
  int assist = -1;                         // entry at the peer
  std::shared_ptr<local::Peer> peer;       // UD: whose the claimed and the assist entry are
  std::uint32_t assist_length = 0;
  std::uint64_t wake_at = 0, give_up_at = 0;  // ns
  std::uint64_t in_turn_at = 0;  // UD: until when we wait for the sender in front of us
  std::uint32_t locals = 0;
  std::uint64_t length = 0;  // of the message, with the GRH for UD
  std::array<local::Segment, ib::kMaxSge + 1> local;
  std::array<std::byte, ib::kGrhBytes> grh;
  ib::Cause wait_cause;
  std::vector<std::uint32_t> mcast_slots;  // of a group send: processes still to serve
  std::uint32_t mcast_slot = 0, mcast_entry = 0;
};

class Qp : public std::enable_shared_from_this<Qp> {
 public:
  Qp(Pd& p, const QpInit& i) : pd(p), type(i.type), init(i) {}
  Pd& pd;
  const ib::QpType type;
  QpInit init;  // with granted caps
  ib::Qpn qpn;
  std::uint32_t index = 0;  // in the QP table
  std::uint32_t generation = 0;
  Engine& engine() const { return pd.context.engine; }

  std::mutex control;  // one modify or destroy at a time
  std::atomic<ib::QpState> state{ib::QpState::Reset};
  base::SpinLock sq_lock;
  nic::QpAttr attr VRB_GUARDED_BY(sq_lock);
  queue::SendRing sq VRB_GUARDED_BY(sq_lock);
  InFlight flight VRB_GUARDED_BY(sq_lock);
  std::shared_ptr<local::Peer> peer
      VRB_GUARDED_BY(sq_lock);  // RC, UC: the process of the destination
  std::uint32_t bound_generation VRB_GUARDED_BY(sq_lock) =
      0;  // of the remote QP when first reached
  bool comm_est_told VRB_GUARDED_BY(sq_lock) = false;
  bool sqd_notified VRB_GUARDED_BY(sq_lock) = false;
  bool receiver_behind VRB_GUARDED_BY(sq_lock) =
      false;  // UC, UD: the last message found no receive in time
  std::shared_ptr<local::Peer> last_ud_peer VRB_GUARDED_BY(sq_lock);

  RecvQueue* rq() { return init.srq != nullptr ? &init.srq->rq : &own_rq; }
  RecvQueue own_rq;
  std::atomic<std::uint32_t> groups{0};
  std::atomic<bool> last_wqe_told{false};
  bool destroyed VRB_GUARDED_BY(sq_lock) = false;
  std::atomic<bool> pending{false};  // in Engine's list of QPs to carry on
  Unacknowledged async_events;
};

}  // namespace vrb::engine
