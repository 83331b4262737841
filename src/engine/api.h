// The engine's face: one function for each verb, in our own types. libibverbs.so.1 (src/verbs) and
// the verbena program call nothing else. One engine a process, made on first use; after a fork the
// child gets a new one and objects of the parent answer with the cause Forked. Every function may
// be called by any thread unless it says otherwise; sources are the man pages of the same names and
// IBTA chapter 11. A refusal carries an errno value and a cause, which was already explained
// (VERBENA_EXPLAIN=1) when it is returned.
//
// Objects belong to the engine from create to destroy. `handle` is the caller's pointer to its own
// object (ibv_qp, ibv_cq ...), given at creation, and comes back with events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/discovery.h"
#include "ib/cause.h"
#include "ib/limits.h"
#include "nic/completion.h"
#include "nic/qp_attr.h"
#include "queue/send_ring.h"

namespace vrb::engine {

class Context;  // an opened device
class Pd;
class Mr;
class Channel;  // completion channel
class Cq;
class Srq;
class Qp;
class Ah;

// --- Device
// -------------------------------------------------------------------------------------------------
// The facts that discovery found, the same for the life of the process.
const PortFacts& port_facts();
ib::Result<Context*> open_device(void* handle);
// Objects that are still there stay valid memory but answer no more; never fails on them
// (ibv_close_device(3)).
ib::Result<void> close_device(Context* context);
// Frees a closed context once the last object made from it has gone; the skin counts them.
void free_context(Context* context);
int async_fd(const Context* context);  // pollable; the caller may set O_NONBLOCK

struct AsyncEvent {
  ib::EventType type = ib::EventType::DeviceFatal;
  void* element = nullptr;  // handle of the QP, CQ or SRQ, as the type says; port events: nullptr
  void* token = nullptr;    // for ack_async_event
};
// Blocks unless O_NONBLOCK is set on async_fd (then Again).
ib::Result<AsyncEvent> get_async_event(Context* context);
void ack_async_event(const AsyncEvent& event);

// --- Protection domains and memory
// ---------------------------------------------------------------------------
ib::Result<Pd*> alloc_pd(Context* context);
ib::Result<void> dealloc_pd(Pd* pd);  // Busy while it has objects
struct MrInfo {
  Mr* mr = nullptr;
  std::uint32_t lkey = 0, rkey = 0;
};
ib::Result<MrInfo> reg_mr(Pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                          std::uint32_t access);
// flags: ibv_rereg_mr_flags (1 translation, 2 PD, 4 access). The keys stay, unless a stopped peer
// may still use them.
ib::Result<MrInfo> rereg_mr(Mr* mr, int flags, Pd* pd, void* addr, std::size_t length,
                            std::uint32_t access);
ib::Result<void> dereg_mr(Mr* mr);

// --- Completion queues
// ---------------------------------------------------------------------------------------
ib::Result<Channel*> create_channel(Context* context);
ib::Result<void> destroy_channel(Channel* channel);  // Busy while CQs use it
int channel_fd(const Channel* channel);
// Blocks unless O_NONBLOCK (Again). Returns the CQ's handle.
ib::Result<void*> get_cq_event(Channel* channel);
ib::Result<Cq*> create_cq(Context* context, std::uint32_t cqe, Channel* channel, void* handle);
std::uint32_t cq_capacity(const Cq* cq);                // at least what was asked for
ib::Result<void> resize_cq(Cq* cq, std::uint32_t cqe);  // Invalid when it holds more than cqe
ib::Result<void> destroy_cq(
    Cq* cq);  // Busy while QPs use it; waits until all events are acknowledged
void ack_cq_events(Cq* cq, unsigned events);
// Returns how many completions were put in `out` (0 = none).
int poll_cq(Cq* cq, std::span<nic::Completion> out);
ib::Result<void> req_notify(Cq* cq, bool solicited_only);

// --- Shared receive queues
// -----------------------------------------------------------------------------------
struct SrqAttr {
  std::uint32_t max_wr = 0, max_sge = 0, limit = 0;
};
ib::Result<Srq*> create_srq(Pd* pd, SrqAttr& attr, void* handle);  // writes the granted values back
ib::Result<void> modify_srq(Srq* srq, const SrqAttr& attr, int mask);  // 1 max_wr (resize), 2 limit
ib::Result<SrqAttr> query_srq(Srq* srq);
ib::Result<void> destroy_srq(Srq* srq);
struct RecvRequest {
  std::uint64_t wr_id = 0;
  std::span<const ib::Sge> sges;
};
ib::Result<void> post_srq_recv(Srq* srq, const RecvRequest& request);

// --- Queue pairs
// ---------------------------------------------------------------------------------------------
struct QpInit {
  ib::QpType type = ib::QpType::Rc;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  nic::QpCap cap;
  bool sq_sig_all = false;
  void* handle = nullptr;
};
// Writes the granted capabilities to init.cap.
ib::Result<Qp*> create_qp(Pd* pd, QpInit& init);
ib::Qpn qpn(const Qp* qp);
ib::QpState qp_state(const Qp* qp);
ib::Result<void> modify_qp(Qp* qp, const nic::QpAttr& attr, std::uint32_t mask);
// All attributes, the state included; `init` gets type, caps and sq_sig_all.
void query_qp(Qp* qp, nic::QpAttr& attr, QpInit& init);
ib::Result<void> destroy_qp(
    Qp* qp);  // Busy while attached to a group; waits for acknowledgement of its events
ib::Result<void> post_send(Qp* qp, const queue::SendRequest& request);
ib::Result<void> post_recv(Qp* qp, const RecvRequest& request);
ib::Result<void> attach_mcast(Qp* qp, const ib::Gid& group);
ib::Result<void> detach_mcast(Qp* qp, const ib::Gid& group);

// --- Address handles
// -----------------------------------------------------------------------------------------
ib::Result<Ah*> create_ah(Pd* pd, const nic::AddressVector& av);
ib::Result<void> destroy_ah(Ah* ah);

// Keeps `refusal` as this thread's last cause and prints it when VERBENA_EXPLAIN is set; returns
// it. For refusals that the skin finds itself (NULL pointers, calls that are not built).
ib::Refusal explain(const char* verb, ib::Refusal refusal);

}  // namespace vrb::engine
