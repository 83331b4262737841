// The layout of NIC memory: the contract between processes (docs/local.md). Two sparse memfds a
// process:
//   tables: only the owner writes (sealed, peers map it for reading): header, keys, QPs, multicast
//   groups, arena with receive WQEs; shared: peers write: lanes, due words, QP reports, assist
//   areas, arena with claim words and shared CQ rings.
// Fixed-width integers and offsets only; a change of anything here is a new kLayoutVersion.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ib/limits.h"
#include "ib/types.h"
#include "memory/key_table.h"
#include "queue/recv_ring.h"
#include "queue/shared_cq.h"

namespace vrb::local {

constexpr std::uint64_t kMagic = 0x31424e4556524256;  // "VBRVENB1"
constexpr std::uint32_t kLayoutVersion = 2;

constexpr std::uint32_t kPeers = 1024;      // peer indices; 0 is the owner itself
constexpr std::uint32_t kLanesPerPeer = 8;  // threads of one peer that can be inside at once
constexpr std::uint32_t kKeys = ib::kMaxMr + 1;
constexpr std::uint32_t kQps = ib::kMaxQp;
constexpr std::uint32_t kSlotsPerProcess =
    8;  // QP index = ordinal of the slot * 16384 + low bits of the QPN; kQps has room for four
constexpr std::uint32_t kMcastEntries = 4096;

// A QP as its peers see it. The body is written while the tag says "not valid"; afterwards only the
// tag changes, by one store per transition. Fields that a transition changes therefore live in the
// tag or a new body is written behind an invalid tag after a grace period.
struct alignas(64) QpEntry {
  std::atomic<std::uint64_t> tag;  // QpTag
  std::uint64_t dest_incarnation;  // reserved
  std::uint32_t dest_qpn;          // RC, UC
  std::uint32_t pd;
  std::uint32_t qkey;     // UD
  std::uint32_t rq_kind;  // 0 own RQ, 1 SRQ
  std::uint64_t rq;       // offset of a queue::RecvRingHeader in the tables
  std::uint64_t recv_cq;  // offset of a queue::SharedCqHeader in the shared file
  std::uint32_t recv_cq_entries;
  std::uint32_t recv_cq_index;  // bit in DueKind::Cq
  std::uint32_t srq_index;      // bit in DueKind::Srq
  std::uint32_t reserved;
};
static_assert(sizeof(QpEntry) == 64);

// valid (bit 0) | carrier is local (bit 1) | paused (bit 2) | QpType (4..7) | QpState (8..11) |
// access (12..15: LOCAL_WRITE, REMOTE_*) | min_rnr_timer (16..20) | generation (32..63; new for
// each life of the index).
struct QpTag {
  bool valid = false;
  bool local = false;
  ib::QpType type = ib::QpType::Rc;
  ib::QpState state = ib::QpState::Reset;
  std::uint8_t access = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t generation = 0;
  bool paused = false;  // its receive CQ is being resized: senders wait, nothing is dropped

  static constexpr QpTag unpack(std::uint64_t w) {
    return {(w & 1) != 0,
            (w & 2) != 0,
            static_cast<ib::QpType>((w >> 4) & 15),
            static_cast<ib::QpState>((w >> 8) & 15),
            static_cast<std::uint8_t>((w >> 12) & 15),
            static_cast<std::uint8_t>((w >> 16) & 31),
            static_cast<std::uint32_t>(w >> 32),
            (w & 4) != 0};
  }
  constexpr std::uint64_t pack() const {
    return std::uint64_t{valid} | std::uint64_t{local} << 1 | std::uint64_t{paused} << 2 |
           std::uint64_t(type) << 4 | std::uint64_t(state) << 8 | std::uint64_t(access & 15) << 12 |
           std::uint64_t(min_rnr_timer & 31) << 16 | std::uint64_t{generation} << 32;
  }
};

// A UD QP attached to a multicast group; a linear table, valid entries have a QP index + 1.
struct McastEntry {
  std::atomic<std::uint32_t> qp;  // index + 1; 0 = free. Written last.
  std::uint32_t reserved;
  ib::Gid group;
};
static_assert(sizeof(McastEntry) == 24);

struct alignas(4096) TablesHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t uid;
  std::uint64_t incarnation;  // random, not 0
  std::uint64_t tables_bytes, shared_bytes;
  std::atomic<std::uint32_t>
      slot[kSlotsPerProcess];  // slots held, kNoSlot = unused; in the order of the QP table
  std::atomic<std::uint32_t> mcast_used;  // entries of `mcast` ever used
  std::uint32_t reserved;
};
constexpr std::uint32_t kNoSlot = 0xffffffff;

struct Tables {
  TablesHeader header;
  memory::KeyEntry keys[kKeys];
  QpEntry qps[kQps];
  McastEntry mcast[kMcastEntries];
};
constexpr std::uint64_t kTablesArena = (sizeof(Tables) + 0xfffff) & ~0xfffffULL;
constexpr std::uint64_t kTablesBytes = kTablesArena + (4ULL << 30);

struct alignas(64) Lane {
  std::atomic<std::uint64_t> epoch;  // odd while its holder is inside
  std::uint64_t pad[7];
};

// What a peer leaves for the owner of a QP when a message of its broke a rule: bits or-ed into the
// QP's word.
constexpr std::uint64_t kReportCommEst = 1;  // first message in RTR
constexpr std::uint64_t kReportError = 2;  // the QP must go to the error state; bits 8..15 say how
constexpr std::uint64_t kReportAccessErr = 1 << 8;  // event QP_ACCESS_ERR
constexpr std::uint64_t kReportReqErr = 2 << 8;     // event QP_REQ_ERR
constexpr std::uint64_t kReportFatal = 4 << 8;      // event QP_FATAL
constexpr std::uint64_t kReportCqOverrun = 8 << 8;  // its receive CQ is full
// bits 16..31: code of the cause

// Which objects have something for the owner's service thread: a bit an object, a summary bit a
// word.
enum class DueKind : std::uint32_t { Cq = 0, Qp, Srq, Peer, kCount };
constexpr std::uint32_t kDueBits = 1U << 20;
struct DueSet {
  std::atomic<std::uint64_t> summary[kDueBits / 64 / 64];
  std::atomic<std::uint64_t> word[kDueBits / 64];
};

// One request of the assist tier; the peer owns the entry in states Free and Done, the target in
// Requested.
struct alignas(64) AssistEntry {
  enum State : std::uint32_t { kFree = 0, kRequested = 1, kServing = 2, kDone = 3 };
  std::atomic<std::uint32_t> state;
  std::uint32_t op;  // AssistOp
  std::uint32_t key;
  std::uint32_t need;  // access flags asked for
  std::uint32_t pd;
  std::uint32_t length;  // bytes, at most kAssistSlab
  std::uint64_t addr;    // as the key names it
  std::uint64_t compare_add, swap;
  std::uint64_t result;  // atomics: the value before
  std::uint32_t status;  // 0 done, else an ib::CauseCode
  std::uint32_t reserved;
};
static_assert(sizeof(AssistEntry) == 64);
enum class AssistOp : std::uint32_t { Put = 1, Get = 2, CompareSwap = 3, FetchAdd = 4 };
constexpr std::uint32_t kAssistEntries = 8;
constexpr std::uint32_t kAssistSlab = 64 * 1024;
struct AssistArea {
  AssistEntry entry[kAssistEntries];
  std::byte pad[4096 - kAssistEntries * sizeof(AssistEntry)];
  std::byte slab[kAssistEntries][kAssistSlab];
};
static_assert(sizeof(AssistArea) % 4096 == 0);

struct Shared {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t reserved;
  std::uint64_t incarnation;
  std::byte pad[4096 - 24];
  Lane lanes[kPeers][kLanesPerPeer];
  DueSet due[static_cast<std::size_t>(DueKind::kCount)];
  std::atomic<std::uint64_t> qp_report[kQps];
  alignas(4096) AssistArea assist[kPeers];
};
constexpr std::uint64_t kSharedArena = (sizeof(Shared) + 0xfffff) & ~0xfffffULL;
constexpr std::uint64_t kSharedBytes = kSharedArena + (4ULL << 30);

// The offsets that docs/local.md gives.
static_assert(offsetof(Tables, keys) == 4096 && offsetof(Tables, qps) == 67'113'024);
static_assert(offsetof(Tables, mcast) == 71'307'328 && kTablesArena == 72'351'744);
static_assert(offsetof(Shared, lanes) == 4096 && offsetof(Shared, due) == 528'384);
static_assert(sizeof(DueSet) == 133'120 && offsetof(Shared, qp_report) == 1'060'864);
static_assert(offsetof(Shared, assist) == 1'585'152 && kSharedArena == 543'162'368);

}  // namespace vrb::local
