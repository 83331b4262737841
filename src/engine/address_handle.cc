// Address handles (ibv_create_ah(3)): where a UD send goes, and whether that is this host.
// SPDX-License-Identifier: Apache-2.0
#include "engine/address.h"
#include "engine/engine.h"
#include "engine/refusals.h"

namespace vrb::engine {

Destination destination(const nic::AddressVector& av) {
  if (!av.has_grh) return Destination::ThisHost;
  if (av.dgid[0] == 0xff || (is_ipv4(av.dgid) && (av.dgid[12] & 0xf0) == 0xe0))
    return Destination::Group;
  return is_local_gid(av.dgid) ? Destination::ThisHost : Destination::Elsewhere;
}

bool holds_gid(unsigned index) {
  return index < ib::kGidTableLength && port_facts().gids[index].gid != ib::Gid{};
}

ib::Result<Ah*> create_ah(Pd* pd, const nic::AddressVector& av) {
  Engine& engine = pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_create_ah");
  if (av.port != 1)
    return refused("ibv_create_ah", ib::Errc::Invalid, ib::CauseCode::BadPort, av.port);
  if (!av.has_grh) {  // RoCE has no LIDs: a datagram needs a GID
    return refused("ibv_create_ah", ib::Errc::Invalid, ib::CauseCode::BadAddressHandle);
  }
  if (!holds_gid(av.sgid_index)) {
    return refused("ibv_create_ah", ib::Errc::Invalid, ib::CauseCode::BadGidIndex, av.sgid_index,
                   ib::kGidTableLength);
  }
  if (engine.ah_count.fetch_add(1) >= ib::kMaxAh) {
    --engine.ah_count;
    return refused("ibv_create_ah", ib::Errc::NoMemory, ib::CauseCode::LimitExceeded,
                   ib::kMaxAh + 1, ib::kMaxAh);
  }
  const Destination to = destination(av);
  ++pd->uses;
  auto* ah = new Ah;
  ah->pd = pd;
  ah->av = av;
  ah->local = to == Destination::ThisHost;
  ah->multicast = to == Destination::Group;
  return ah;
}

ib::Result<void> destroy_ah(Ah* ah) {
  Engine& engine = ah->pd->context.engine;
  if (engine.forked()) return refused_forked("ibv_destroy_ah");
  --engine.ah_count;
  --ah->pd->uses;
  ah->drop();
  return {};
}

}  // namespace vrb::engine
