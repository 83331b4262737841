// The engine: what one process has of everything. It owns NIC memory, the switchboard, the
// registries of objects and the service thread, and carries the work requests that wait. Made on
// first use (Engine::get), never destroyed; a forked child gets a new one. Public functions: any
// thread, unless they say "service thread".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/config.h"
#include "engine/objects.h"
#include "local/nic_memory.h"
#include "local/switchboard.h"
#include "memory/key_table.h"

namespace vrb::engine {

std::uint64_t now_ns();         // CLOCK_MONOTONIC
std::uint64_t random_number();  // not secret

class Engine {
 public:
  static Engine& get();

  Engine();

  // --- parts that are made on first need
  // -----------------------------------------------------------------
  ib::Result<local::NicMemory*> memory();
  ib::Result<local::Switchboard*> switchboard();  // starts the service thread
  local::NicMemory* memory_if_made() { return memory_.get(); }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  // Around a fork: hold() before, then let_go() in the parent and abandon() in the child.
  void hold();
  void let_go();
  void abandon();

  // --- registries
  // -----------------------------------------------------------------------------------------
  // Number spaces of PDs, CQs and SRQs: a number is free again after release.
  class Numbers {
   public:
    explicit Numbers(std::uint32_t limit) : limit_(limit) {}
    bool take(std::uint32_t& number);
    void release(std::uint32_t number);

   private:
    std::mutex mutex_;
    std::uint32_t limit_, next_ = 0;
    std::vector<std::uint32_t> free_;
  };
  Numbers pds{ib::kMaxPd}, cq_numbers{ib::kMaxCq}, srq_numbers{ib::kMaxSrq};
  std::atomic<std::uint32_t> ah_count{0};
  std::uint64_t next_queue_id() { return queue_ids_.fetch_add(1, std::memory_order_relaxed); }

  std::mutex registry_lock;  // the three maps; never held while waiting
  std::unordered_map<std::uint32_t, Cq*> cqs;
  std::unordered_map<std::uint32_t, Srq*> srqs;
  std::unordered_map<std::uint32_t, std::shared_ptr<Qp>> qps;  // by index

  // A free index of the QP table, taking another slot when the ones held are used up. NoQpnLeft,
  // NoSlot.
  struct QpNumber {
    std::uint32_t index = 0;
    ib::Qpn qpn;
    std::uint32_t generation = 0;
  };
  ib::Result<QpNumber> take_qp_number();
  void release_qp_number(std::uint32_t index);
  // The QP behind an index, for pollers; nullptr when there is none. Valid while the caller holds a
  // lock that destroy_qp needs (the lock of one of its CQs).
  Qp* qp_at(std::uint32_t index) const { return qp_table_[index].load(std::memory_order_acquire); }
  void set_qp_at(std::uint32_t index, Qp* qp) {
    qp_table_[index].store(qp, std::memory_order_release);
  }
  std::shared_ptr<Qp> find_qp(std::uint32_t index);

  std::mutex mr_lock;
  std::unique_ptr<memory::KeyTable> keys;  // made with memory()
  memory::KeyView key_view() { return {memory_->tables().keys, local::kKeys}; }

  // --- progress
  // -------------------------------------------------------------------------------------------
  // Notes that the front of qp's send queue waits until flight.wake_at at the latest; the service
  // thread and pollers carry it on. Needs sq_lock.
  void add_pending(Qp& qp) VRB_REQUIRES(qp.sq_lock);
  bool has_pending() const { return pending_count_.load(std::memory_order_relaxed) != 0; }
  // Carries on what waits, skipping QPs that somebody else is at.
  void progress();
  void wake_service();  // the service thread looks at everything soon
  // A peer completed entry `wqe` of a receive queue for a QP that is not there any more: when the
  // queue is an SRQ, the service thread posts the entry again.
  void note_orphan(std::uint64_t rq_id, std::uint32_t wqe);
  // A CQ has overrun: the service thread moves every QP that uses it to the error state
  // (IBTA 11.6.3.1), for completions of theirs are lost.
  void note_overrun(Cq& cq);

 private:
  void start_service();
  void service_loop();
  void serve_due();   // service thread
  void clean_dead();  // service thread
  void clean_dead_peer(std::uint32_t index);
  void put_orphans_back();           // service thread
  void fail_users_of_overrun_cqs();  // service thread
  friend void* service_main(void*);

  std::mutex start_lock_;
  std::unique_ptr<local::NicMemory> memory_;
  std::unique_ptr<local::Switchboard> switchboard_;
  std::atomic<bool> memory_made_{false}, switchboard_made_{false};
  int doorbell_ = -1;
  std::atomic<bool> forked_{false};
  bool held_ = false;  // the switchboard, by hold()

  std::mutex qpn_lock_;
  struct Slot {
    std::uint32_t ordinal = 0, next = 0, in_use = 0;
  };
  std::vector<Slot> slots_;
  std::vector<bool> qp_taken_;
  std::vector<std::uint32_t> qp_generation_;
  std::unique_ptr<std::atomic<Qp*>[]> qp_table_;

  struct Pending {
    std::shared_ptr<Qp> qp;
    std::uint64_t wake_at = 0;
  };
  void note_pending(std::shared_ptr<Qp> qp, std::uint64_t wake_at);
  std::uint64_t next_wake();  // service thread, before it sleeps
  std::mutex pending_lock_;
  std::vector<Pending> pending_;
  std::uint64_t service_wake_ = 0;  // until when the service thread sleeps; under pending_lock_
  std::atomic<std::uint32_t> pending_count_{0};

  std::atomic<std::uint64_t> queue_ids_{1};
  struct Orphan {
    std::uint64_t rq_id;
    std::uint32_t wqe;
  };
  std::mutex orphan_lock_;
  std::vector<Orphan> orphans_;
  std::mutex overrun_lock_;
  std::vector<std::uint32_t> overrun_cqs_;  // their indices
};

// The verbs of several files that others of the engine need.
void raise_async(Context& context, ib::EventType type, void* element, Unacknowledged& count);
void raise_qp_event(Qp& qp, ib::EventType type);
void raise_cq_event(Cq& cq);  // completion event, when the program wants one
// Pushes an own completion; raises events, notes an overrun. Takes the CQ lock.
void push_completion(Cq& cq, const queue::OwnCqe& cqe, bool solicited);
// Moves what peers have published into the private ring, wr_ids resolved. Needs the CQ lock.
void drain_shared(Engine& engine, Cq& cq) VRB_REQUIRES(cq.lock);
// Gives the CQ a larger shared ring while senders of its QPs wait (completion.cc).
ib::Result<void> replace_ring(Engine& engine, Cq& cq, std::uint32_t cqe);
// A piece of shared NIC memory with an empty ring for `capacity` completions.
ib::Result<local::Piece> make_ring(Engine& engine, std::uint32_t capacity, queue::SharedCq& ring);
// Removes every completion of the QP (RESET, destroy).
void purge_completions(Qp& qp);

// The error state and its flush (IBTA 10.3.1.7, 10.8.2). Needs sq_lock; UC and UD send errors go to
// SQE instead.
void enter_error(Qp& qp) VRB_REQUIRES(qp.sq_lock);
// Of a work request that failed: stop_sending() before its completion is seen, enter_send_error()
// after it, for the flush.
void stop_sending(Qp& qp) VRB_REQUIRES(qp.sq_lock);
void enter_send_error(Qp& qp) VRB_REQUIRES(qp.sq_lock);
// What peers have reported of the QP in this life of it (A30): error state and events. Service
// thread, and whoever polls a completion in error. Takes sq_lock.
void settle_report(Qp& qp);
void flush_send_queue(Qp& qp) VRB_REQUIRES(qp.sq_lock);
// A receive posted to a QP in the error state completes at once. Takes sq_lock.
void flush_receive(Qp& qp, std::uint64_t wr_id);
// Publishes the QP's state, access flags and RNR timer to its peers by one store.
void publish_tag(Qp& qp) VRB_REQUIRES(qp.sq_lock);
void pause_tag(Qp& qp, bool paused);

// Carries on the send queue as far as it goes. Needs sq_lock (requester.cc).
void run_send_queue(Qp& qp) VRB_REQUIRES(qp.sq_lock);
// The oldest WQE is done: its place is behind `done`, what it held is let go. Needs sq_lock.
void retire_front(Qp& qp) VRB_REQUIRES(qp.sq_lock);
// Forgets where the oldest WQE stood (flush, RESET) and lets go of what it holds at its peer. Needs
// sq_lock; not from inside a lane.
void abort_flight(Qp& qp) VRB_REQUIRES(qp.sq_lock);

void explain_completion(const Qp& qp, std::uint64_t wr_id, ib::WcStatus status,
                        const ib::Cause& cause);

}  // namespace vrb::engine
