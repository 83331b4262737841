// SPDX-License-Identifier: Apache-2.0
#include "local/outbound.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/points.h"
#include "local/slot.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kFirstRetryNs = 5'000'000;
constexpr std::uint64_t kLongestRetryNs = 100'000'000;

// A cause that a stranger sent: only what a Refuse may say.
ib::Cause refusal(const ControlMessage& message, const Ourselves& us, const Identity& peer) {
  const auto code = static_cast<ib::CauseCode>(message.cause);
  switch (code) {
    case ib::CauseCode::OtherUser:
      return ib::cause(code, 0, peer.uid, us.uid);
    case ib::CauseCode::OtherLayout:
      return ib::cause(code, 0, message.layout_version, us.layout_version);
    case ib::CauseCode::PeerWantsWire:
    case ib::CauseCode::OtherNamespace:
    case ib::CauseCode::NotDumpable:
      return ib::cause(code);
    case ib::CauseCode::LimitExceeded:
      return ib::cause(code, kPeers, kPeers - 1);
    default:
      return {};
  }
}

bool same_sizes(const ControlMessage& m) {
  return m.tables_bytes == kTablesBytes && m.shared_bytes == kSharedBytes;
}

bool same_headers(const Tables& tables, const Shared& shared, std::uint64_t incarnation) {
  const TablesHeader& header = tables.header;
  return header.magic == kMagic && header.layout_version == kLayoutVersion &&
         header.incarnation == incarnation && shared.magic == kMagic &&
         shared.incarnation == incarnation;
}

}  // namespace

Outbound::Outbound(const Party& party, int wake)
    : party_(party), wake_(wake), peers_(ib::kSlots), lives_(ib::kSlots) {}

std::shared_ptr<Peer> Outbound::find(std::uint32_t slot) {
  std::shared_ptr<Peer> peer;
  {
    const base::SpinGuard guard(lock_);
    std::shared_ptr<Peer>& known = peers_[slot % ib::kSlots];
    if (known && known->state() != PeerState::Dead) return known;
    known = std::make_shared<Peer>();
    known->slot = slot % ib::kSlots;
    fresh_.push_back(known);
    peer = known;
  }
  const std::uint64_t one = 1;
  if (write(wake_, &one, sizeof one) < 0) return peer;
  return peer;
}

bool Outbound::run(std::uint64_t now_ns) {
  {
    const base::SpinGuard guard(lock_);
    for (std::shared_ptr<Peer>& peer : fresh_) attempts_.push_back({std::move(peer)});
    fresh_.clear();
  }
  bool changed = false;
  for (std::size_t i = 0; i < attempts_.size();) {
    Attempt& attempt = attempts_[i];
    const bool due = !attempt.asked && attempt.retry_at <= now_ns;
    const bool over = drop_unwanted(attempt) || (due && start(attempt, now_ns));
    changed |= over;
    if (over) {
      attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return changed;
}

// True when nobody but us holds the peer any more.
bool Outbound::drop_unwanted(Attempt& attempt) {
  std::shared_ptr<Peer> gone;
  {
    const base::SpinGuard guard(lock_);
    std::shared_ptr<Peer>& known = peers_[attempt.peer->slot % ib::kSlots];
    const long ours = known == attempt.peer ? 2 : 1;
    if (attempt.peer.use_count() > ours) return false;
    if (ours == 2) gone = std::move(known);
  }
  close(*attempt.peer);
  return true;
}

void Outbound::close(Peer& peer) {
  party_.unwatch(peer.socket_.get());
  party_.unwatch(peer.pidfd_.get());
  peer.socket_.reset();
  peer.pidfd_.reset();
}

// Takes the peer out of the table, so that the next find() makes a new one.
void Outbound::forget(const Peer& peer) {
  std::shared_ptr<Peer> gone;
  const base::SpinGuard guard(lock_);
  std::shared_ptr<Peer>& known = peers_[peer.slot % ib::kSlots];
  if (known.get() == &peer) gone = std::move(known);
}

bool Outbound::refuse(Peer& peer, const ib::Cause& cause) {
  close(peer);
  peer.cause = cause;
  peer.state_.store(PeerState::Refused, std::memory_order_release);
  forget(peer);
  return true;
}

void Outbound::retry(Attempt& attempt, const ib::Cause& waiting_for, std::uint64_t now_ns) {
  close(*attempt.peer);
  attempt.asked = false;
  attempt.delay = std::clamp(2 * attempt.delay, kFirstRetryNs, kLongestRetryNs);
  attempt.retry_at = now_ns + attempt.delay;
  attempt.peer->waiting_for_.store(std::uint64_t(waiting_for.code) |
                                       (waiting_for.args[0] & 0xffff) << 16 |
                                       waiting_for.args[1] << 32,
                                   std::memory_order_relaxed);
}

// True when the attempt is over.
bool Outbound::start(Attempt& attempt, std::uint64_t now_ns) {
  Peer& peer = *attempt.peer;
  const auto absent = ib::cause(ib::CauseCode::PeerAbsent);
  const Ourselves us = party_.us();
  if (us.wire_only) return refuse(peer, ib::cause(ib::CauseCode::WireForced));
  if (!us.dumpable) return refuse(peer, ib::cause(ib::CauseCode::NotDumpable));
  Fd socket = Fd::adopt(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    retry(attempt, ib::cause(ib::CauseCode::SystemRefused, SYS_socket, errno), now_ns);
    return false;
  }
  const SlotName name = slot_name(peer.slot);
  if (connect(socket.get(), name.get(), name.length) != 0) {
    // EAGAIN: a process listens there and its backlog is full (A40).
    const bool full = errno == EAGAIN;
    retry(attempt, full ? ib::cause(ib::CauseCode::PeerSilent) : absent, now_ns);
    return false;
  }
  VRB_POINT("outbound.connected");
  const Identity who = credentials(socket.get());
  if (const ib::Cause cause = judge_user(us, party_.policy, who.uid);
      cause.code != ib::CauseCode::None) {
    return refuse(peer, cause);
  }
  PeerPid process = peer_pidfd(socket.get(), who.pid);
  if (process.gone) {  // a child of the dead holds its listener
    retry(attempt, absent, now_ns);
    return false;
  }
  peer.pid = who.pid;
  peer.pidfd_ = std::move(process.fd);
  peer.socket_ = std::move(socket);
  const std::uint32_t life = ++lives_[peer.slot % ib::kSlots];
  const bool sent =
      party_.watch(peer.socket_.get(), {Watch::Owner, peer.slot, life}) &&
      (!peer.pidfd_ || party_.watch(peer.pidfd_.get(), {Watch::OwnerPid, peer.slot, life})) &&
      send_message(peer.socket_.get(), party_.message(MessageType::Hello, us), {party_.doorbell});
  if (!sent) {
    retry(attempt, absent, now_ns);
    return false;
  }
  VRB_POINT("hello.sent");
  attempt.asked = true;
  peer.waiting_for_.store(std::uint64_t(ib::CauseCode::PeerSilent), std::memory_order_relaxed);
  return false;
}

bool Outbound::on_event(Token token, std::uint64_t now_ns) {
  if (token.index >= ib::kSlots || token.life != lives_[token.index]) return false;
  const auto of_slot = [&](const Attempt& a) { return a.asked && a.peer->slot == token.index; };
  const auto attempt = std::find_if(attempts_.begin(), attempts_.end(), of_slot);
  if (attempt != attempts_.end()) {
    if (token.what == Watch::OwnerPid) {
      retry(*attempt, ib::cause(ib::CauseCode::PeerAbsent), now_ns);
      return false;
    }
    if (!on_answer(*attempt, now_ns)) return false;
    attempts_.erase(attempt);
    return true;
  }
  // A Ready peer has nothing more to say: hang-up, death or nonsense, it is over.
  std::shared_ptr<Peer> peer;
  {
    const base::SpinGuard guard(lock_);
    peer = peers_[token.index];
  }
  if (!peer || peer->state() != PeerState::Ready) return false;
  party_.unwatch(peer->socket_.get());
  party_.unwatch(peer->pidfd_.get());
  peer->state_.store(PeerState::Dead, std::memory_order_release);
  VRB_POINT("outbound.dead");
  forget(*peer);
  return true;
}

// True when the attempt is over.
bool Outbound::on_answer(Attempt& attempt, std::uint64_t now_ns) {
  Peer& peer = *attempt.peer;
  Incoming incoming;
  switch (receive_message(peer.socket_.get(), incoming)) {
    case Received::Nothing:
      return false;
    case Received::HungUp:
    case Received::Garbage:
      retry(attempt, ib::cause(ib::CauseCode::PeerAbsent), now_ns);
      return false;
    case Received::Message:
      break;
  }
  const Ourselves us = party_.us();
  const Identity who = told(credentials(peer.socket_.get()), incoming.message);
  const auto type = static_cast<MessageType>(incoming.message.type);
  ib::Cause cause;
  if (type == MessageType::Refuse) cause = refusal(incoming.message, us, who);
  if (type == MessageType::Welcome) cause = judge(us, party_.policy, who);
  if (cause.code != ib::CauseCode::None) return refuse(peer, cause);
  if (type == MessageType::Welcome && accept(peer, incoming)) return true;
  retry(attempt, ib::cause(ib::CauseCode::PeerAbsent), now_ns);
  return false;
}

// Maps what a Welcome brought, after a look at it; false when it is not what it says.
bool Outbound::accept(Peer& peer, Incoming& welcome) {
  const ControlMessage& message = welcome.message;
  const int tables_fd = welcome.fds[0].get();
  const int shared_fd = welcome.fds[1].get();
  if (message.index == 0 || message.index >= kPeers || message.incarnation == 0 ||
      message.incarnation == party_.memory.incarnation() || !same_sizes(message) ||
      !is_sealed_file(tables_fd, kTablesBytes, true) ||
      !is_sealed_file(shared_fd, kSharedBytes, false) || !is_doorbell(welcome.fds[2].get())) {
    return false;
  }
  auto tables = Mapping::of(tables_fd, kTablesBytes, false);
  if (!tables) return refuse(peer, tables.error().cause);
  auto shared = Mapping::of(shared_fd, kSharedBytes, true);
  if (!shared) return refuse(peer, shared.error().cause);
  peer.tables = reinterpret_cast<const Tables*>(tables->get());
  peer.shared = reinterpret_cast<Shared*>(shared->get());
  if (!same_headers(*peer.tables, *peer.shared, message.incarnation)) return false;
  peer.tables_map_ = std::move(*tables);
  peer.shared_map_ = std::move(*shared);
  peer.incarnation = message.incarnation;
  peer.index = message.index;
  peer.doorbell_fd_ = std::move(welcome.fds[2]);
  peer.doorbell = peer.doorbell_fd_.get();
  peer.adopt_lanes();
  peer.cma.store(probe(peer, message.header_at), std::memory_order_relaxed);
  VRB_POINT("outbound.ready");
  peer.state_.store(PeerState::Ready, std::memory_order_release);
  return true;
}

// Does the pid name the process whose header we have mapped, and may we read it?
bool Outbound::probe(const Peer& peer, std::uint64_t header_at) const {
  // Without a pidfd nobody would tell us that the pid has become another process's.
  if (party_.policy.no_cma || peer.pid == 0 || !peer.pidfd_) return false;
  struct {
    std::uint64_t magic;
    std::uint32_t layout_version, uid;
    std::uint64_t incarnation;
  } seen{};
  const iovec ours{&seen, sizeof seen};
  const iovec theirs{reinterpret_cast<void*>(header_at), sizeof seen};
  const long n = syscall(SYS_process_vm_readv, peer.pid, &ours, 1, &theirs, 1, 0);
  return n == static_cast<long>(sizeof seen) && seen.magic == kMagic &&
         seen.incarnation == peer.incarnation && !has_ended(peer.pidfd_.get());
}

std::uint64_t Outbound::deadline_ns() const {
  std::uint64_t first = ~0ULL;
  for (const Attempt& attempt : attempts_) {
    if (!attempt.asked) first = std::min(first, attempt.retry_at);
  }
  return first;
}

}  // namespace vrb::local
