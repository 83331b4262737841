// Moving bytes between our memory and a peer's: which tier reaches a range, and the copies
// themselves. Called by the posting thread or whoever continues its WQE; inside a lane, and no lock
// of the peer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ib/cause.h"
#include "local/peer.h"

namespace vrb::local {

// How a range of the peer is reached (docs/local.md, "tiers"). Decided here and nowhere else, once
// per part.
enum class Tier : std::uint8_t { Mapped, Cma, Assist };
Tier reach(const Peer& peer, const memory::KeyEntry& entry, std::uint64_t va, std::uint64_t length);

// A run of bytes: in our address space (local lists) or in the peer's (remote lists).
struct Segment {
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
};

struct Copied {
  std::uint64_t bytes = 0;   // done, in address order from `skip` on
  int error = 0;             // errno of the copy that stopped: EFAULT, EPERM, ESRCH ...
  bool local_fault = false;  // EFAULT: true when our side is not mapped
};

// Copies up to `budget` bytes from the local list to the remote list (put) or back (get), beginning
// `skip` bytes into both. Both lists describe the same number of bytes. By address for `self`, by
// process_vm_writev/readv for others, where nothing but the order of calls orders the bytes: who
// wants the last ones to be seen last puts them in a call of their own (A32).
Copied put(Peer& peer, std::span<const Segment> local, std::span<const Segment> remote,
           std::uint64_t skip, std::uint64_t budget);
Copied get(Peer& peer, std::span<const Segment> local, std::span<const Segment> remote,
           std::uint64_t skip, std::uint64_t budget);

// Atomic on an 8-byte aligned address of our own memory (self, and serving assists); returns the
// value before.
std::uint64_t compare_swap(std::uint64_t va, std::uint64_t compare, std::uint64_t swap);
std::uint64_t fetch_add(std::uint64_t va, std::uint64_t add);
// Is our own [va, va + length) mapped (and writable when asked)? By process_vm_readv of ourselves;
// true when that is refused.
bool mapped(std::uint64_t va, std::uint64_t length);
// For ibv_reg_mr: does every page of the range exist with the access asked for? From
// /proc/self/maps (or PROCMAP_QUERY). Reads nothing of the memory.
bool range_mapped(std::uint64_t va, std::uint64_t length, bool writable);

// The assist tier, initiator's side. submit() puts one request (data copied to the slab for Put)
// and rings; -1 = all entries busy, try later; -2 = our own memory is not mapped (or `length` is
// above kAssistSlab). done() polls it; take() copies the result out (Get) and frees the entry.
struct AssistRequest {
  AssistOp op = AssistOp::Put;
  std::uint32_t key = 0;
  std::uint32_t need = 0;  // access flags
  std::uint32_t pd = 0xffffffff;
  std::uint64_t addr = 0;  // as the key names it
  std::uint32_t length = 0;
  std::uint64_t compare_add = 0, swap = 0;
};
int submit_assist(Peer& peer, const AssistRequest& request, std::span<const Segment> local,
                  std::uint64_t skip);
bool assist_done(const Peer& peer, int entry);
struct AssistResult {
  ib::CauseCode status = ib::CauseCode::None;
  std::uint64_t before = 0;  // atomics
};
AssistResult take_assist(Peer& peer, int entry, std::span<const Segment> local, std::uint64_t skip,
                         std::uint32_t length);
// A request whose QP has gone: the entry is freed when the target is done with it.
void drop_assist(Peer& peer, int entry);

}  // namespace vrb::local
