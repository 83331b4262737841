// Multicast on the host (ibv_attach_mcast(3); IBTA 10.5): each process lists its attached UD QPs in
// its tables, and a sender delivers a copy to every member of every running process, its own
// included.
// SPDX-License-Identifier: Apache-2.0
#include "engine/address.h"
#include "engine/refusals.h"
#include "engine/requester.h"

namespace vrb::engine {
namespace {

std::mutex g_table_lock;  // one writer of our table at a time

bool is_group(const ib::Gid& gid) {
  nic::AddressVector av;
  av.has_grh = true;
  av.dgid = gid;
  return destination(av) == Destination::Group;
}

local::McastEntry* find_entry(local::Tables& tables, std::uint32_t qp, const ib::Gid& group) {
  const std::uint32_t used = tables.header.mcast_used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    local::McastEntry& entry = tables.mcast[i];
    if (entry.qp.load() == qp && (qp == 0 || entry.group == group)) return &entry;
  }
  return nullptr;
}

void next_member(Qp& qp) VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  flight.offset = flight.in_turn_at = 0;
  flight.claimed = false;
  ++flight.mcast_entry;
}

// Delivers to the members in one process, from mcast_entry on.
Verdict serve_process(Qp& qp, const queue::SendWqe& wqe, local::Peer& peer, const ib::Gid& group)
    VRB_REQUIRES(qp.sq_lock) {
  InFlight& flight = qp.flight;
  const local::InsideLane inside(peer);
  const std::uint32_t used = std::min(
      peer.tables->header.mcast_used.load(std::memory_order_acquire), local::kMcastEntries);
  while (flight.mcast_entry < used) {
    const local::McastEntry& entry = peer.tables->mcast[flight.mcast_entry];
    const std::uint32_t member = entry.qp.load(std::memory_order_acquire);
    if (member != 0 && entry.group == group) {
      const Verdict v = send_datagram(qp, wqe, peer, member - 1);
      if (v.kind == Verdict::Kind::Wait) return v;
      give_claim_back(qp, peer);
    }
    next_member(qp);
  }
  return Verdict::go();
}

}  // namespace

Verdict multicast(Qp& qp, const queue::SendWqe& wqe) {
  InFlight& flight = qp.flight;
  const auto board = qp.engine().switchboard();
  if (!board) return Verdict::done();
  const ib::Gid group = static_cast<const Ah*>(wqe.request.ah)->av.dgid;
  if (flight.mcast_slots.empty()) flight.mcast_slots = local::Switchboard::running_slots();
  for (; flight.mcast_slot < flight.mcast_slots.size();
       ++flight.mcast_slot, flight.mcast_entry = 0) {
    const std::uint32_t slot = flight.mcast_slots[flight.mcast_slot];
    const auto peer = flight.peer ? flight.peer : (*board)->find(slot);
    if (peer->state() == local::PeerState::Connecting && flight.wait != InFlight::Wait::Peer) {
      return Verdict::wait_for(InFlight::Wait::Peer,
                               ib::cause(ib::CauseCode::PeerSilent, slot << 14, 0));
    }
    if (peer->state() == local::PeerState::Connecting && now_ns() < flight.give_up_at) {
      return Verdict::wait_for(InFlight::Wait::Peer,
                               ib::cause(ib::CauseCode::PeerSilent, slot << 14, 0));
    }
    if (peer->state() != local::PeerState::Ready) {
      let_go_of_peer(qp);
      continue;
    }
    const bool first_slot =
        peer->self ? slot == (*board)->slot(0) : peer->tables->header.slot[0] == slot;
    if (!first_slot) continue;  // a process with several slots is served once
    const Verdict v = serve_process(qp, wqe, *peer, group);
    keep_peer(qp, peer);
    if (v.kind == Verdict::Kind::Wait) return v;
  }
  return Verdict::done();
}

ib::Result<void> attach_mcast(Qp* qp, const ib::Gid& group) {
  Engine& engine = qp->engine();
  if (engine.forked()) return refused_forked("ibv_attach_mcast");
  if (qp->type != ib::QpType::Ud || !is_group(group)) {
    return refused("ibv_attach_mcast", ib::Errc::Invalid, ib::CauseCode::NotMulticast, group[0],
                   group[15]);
  }
  local::Tables& tables = engine.memory_if_made()->tables();
  const std::lock_guard guard(g_table_lock);
  if (find_entry(tables, qp->index + 1, group) != nullptr) return {};
  local::McastEntry* entry = find_entry(tables, 0, group);
  if (entry == nullptr) {
    const std::uint32_t used = tables.header.mcast_used.load();
    if (used == local::kMcastEntries) {
      return refused("ibv_attach_mcast", ib::Errc::NoMemory, ib::CauseCode::LimitExceeded, used + 1,
                     used);
    }
    entry = &tables.mcast[used];
    tables.header.mcast_used.store(used + 1);
  }
  entry->group = group;
  entry->qp.store(qp->index + 1, std::memory_order_release);
  ++qp->groups;
  return {};
}

ib::Result<void> detach_mcast(Qp* qp, const ib::Gid& group) {
  Engine& engine = qp->engine();
  if (engine.forked()) return refused_forked("ibv_detach_mcast");
  const std::lock_guard guard(g_table_lock);
  local::McastEntry* entry = find_entry(engine.memory_if_made()->tables(), qp->index + 1, group);
  if (entry == nullptr)
    return refused("ibv_detach_mcast", ib::Errc::Invalid, ib::CauseCode::NotAttached);
  entry->qp.store(0);
  engine.memory_if_made()->grace();
  --qp->groups;
  return {};
}

}  // namespace vrb::engine
