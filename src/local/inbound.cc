// SPDX-License-Identifier: Apache-2.0
#include "local/inbound.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/points.h"

namespace vrb::local {
namespace {

constexpr std::uint32_t kMostPending = 64;
constexpr std::uint64_t kHelloNs = 1'000'000'000;
constexpr int kAcceptBurst = 128;
constexpr std::size_t kRestingIndices = 16;

bool out_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

Inbound::Inbound(const Party& party)
    : party_(party), pending_(kMostPending), members_(new Member[kPeers]) {}

bool Inbound::accept_from(int listener, std::uint64_t now_ns) {
  for (int turn = 0; turn < kAcceptBurst; ++turn) {
    Fd socket = Fd::adopt(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return !out_of_descriptors(errno);
    const Identity who = credentials(socket.get());
    const Ourselves us = party_.us();
    if (const ib::Cause cause = judge_user(us, party_.policy, who.uid);
        cause.code != ib::CauseCode::None) {
      refuse(socket.get(), us, cause.code);
      continue;
    }
    const std::uint32_t place = free_place();
    Pending& pending = pending_[place];
    pending = Pending{std::move(socket), who, now_ns + kHelloNs, ++lives_};
    if (!party_.watch(pending.socket.get(), {Watch::Pending, place, pending.life})) {
      pending.socket.reset();
      continue;
    }
    VRB_POINT("inbound.accepted");
    read_hello(place);
  }
  return true;
}

// A free place; the oldest connection that says nothing gives way to a new one.
std::uint32_t Inbound::free_place() {
  const auto older = [](const Pending& a, const Pending& b) {
    return std::pair(bool(a.socket), a.expires) < std::pair(bool(b.socket), b.expires);
  };
  const auto place = std::min_element(pending_.begin(), pending_.end(), older);
  drop(*place);
  return static_cast<std::uint32_t>(place - pending_.begin());
}

void Inbound::drop(Pending& pending) {
  party_.unwatch(pending.socket.get());
  pending.socket.reset();
}

void Inbound::refuse(int socket, const Ourselves& us, ib::CauseCode cause) {
  // A stranger learns nothing but the reason.
  ControlMessage message = party_.message(MessageType::Refuse, us);
  message.incarnation = message.user_ns = message.pid_ns = message.net_ns = 0;
  message.cause = static_cast<std::uint32_t>(cause);
  send_message(socket, message, {});
}

void Inbound::on_event(Token token) {
  switch (token.what) {
    case Watch::Pending:
      if (token.index < pending_.size() && pending_[token.index].life == token.life &&
          pending_[token.index].socket) {
        read_hello(token.index);
      }
      break;
    case Watch::Member:
    case Watch::MemberPid:
      // A member has nothing more to say: whatever arrives ends the connection, as hang-up does.
      if (token.index < kPeers && members_[token.index].life == token.life) bury(token.index);
      break;
    default:
      break;
  }
}

void Inbound::read_hello(std::uint32_t place) {
  Pending& pending = pending_[place];
  Incoming incoming;
  const Received received = receive_message(pending.socket.get(), incoming);
  if (received == Received::Nothing) return;
  if (received != Received::Message) return drop(pending);
  const Ourselves us = party_.us();
  const Identity who = told(pending.credentials, incoming.message);
  ib::Cause cause = judge(us, party_.policy, who);
  // To the other end our own wish for the wire is the peer's.
  if (cause.code == ib::CauseCode::WireForced) cause.code = ib::CauseCode::PeerWantsWire;
  if (cause.code != ib::CauseCode::None) {
    refuse(pending.socket.get(), us, cause.code);
  } else if (incoming.message.type == static_cast<std::uint32_t>(MessageType::Hello) &&
             is_doorbell(incoming.fds[0].get())) {
    return admit(pending, incoming, us);
  }
  drop(pending);
}

void Inbound::admit(Pending& pending, Incoming& incoming, const Ourselves& us) {
  PeerPid process = peer_pidfd(pending.socket.get(), pending.credentials.pid);
  if (process.gone) return drop(pending);
  const std::uint32_t index = take_index();
  if (index == 0) {
    refuse(pending.socket.get(), us, ib::CauseCode::LimitExceeded);
    return drop(pending);
  }
  Member& member = members_[index];
  party_.unwatch(pending.socket.get());
  member.socket = std::move(pending.socket);
  member.pidfd = std::move(process.fd);
  {
    const base::SpinGuard guard(lock_);
    member.doorbell = std::move(incoming.fds[0]);
  }
  member.life = ++lives_;
  member.state = Member::State::Alive;
  party_.memory.set_peers_in_use(next_index_.load(std::memory_order_relaxed));
  ControlMessage welcome = party_.message(MessageType::Welcome, us);
  welcome.index = index;
  welcome.header_at = reinterpret_cast<std::uint64_t>(&party_.memory.tables().header);
  VRB_POINT("welcome.sending");
  const bool sent =
      party_.watch(member.socket.get(), {Watch::Member, index, member.life}) &&
      (!member.pidfd || party_.watch(member.pidfd.get(), {Watch::MemberPid, index, member.life})) &&
      send_message(member.socket.get(), welcome,
                   {party_.memory.tables_fd(), party_.memory.shared_fd(), party_.doorbell});
  VRB_POINT("welcome.sent");
  if (!sent) bury(index);
}

std::uint32_t Inbound::take_index() {
  // Reuse keeps grace periods short, but not at once, so that a late word of the dead names nobody.
  const std::uint32_t fresh = next_index_.load(std::memory_order_relaxed);
  if (fresh < kPeers && free_.size() < kRestingIndices) {
    next_index_.store(fresh + 1, std::memory_order_relaxed);
    return fresh;
  }
  if (free_.empty()) return 0;
  const std::uint32_t index = free_.front();
  free_.pop_front();
  return index;
}

void Inbound::bury(std::uint32_t index) {
  Member& member = members_[index];
  if (member.state != Member::State::Alive) return;
  member.state = Member::State::Dead;
  party_.unwatch(member.socket.get());
  party_.unwatch(member.pidfd.get());
  member.socket.reset();
  member.pidfd.reset();
  {
    const base::SpinGuard guard(lock_);
    member.doorbell.reset();
  }
  VRB_POINT("inbound.buried");
  party_.memory.forget_lanes(index);
  dead_.push_back(index);
}

void Inbound::expire(std::uint64_t now_ns) {
  for (Pending& pending : pending_) {
    if (pending.socket && pending.expires <= now_ns) drop(pending);
  }
}

std::uint64_t Inbound::deadline_ns() const {
  std::uint64_t first = ~0ULL;
  for (const Pending& pending : pending_) {
    if (pending.socket) first = std::min(first, pending.expires);
  }
  return first;
}

std::vector<std::uint32_t> Inbound::take_dead() { return std::exchange(dead_, {}); }

void Inbound::release_index(std::uint32_t index) {
  if (index == 0 || index >= kPeers || members_[index].state != Member::State::Dead) return;
  party_.memory.forget_lanes(index);
  // Its assist requests go with it: all entries become Free.
  constexpr std::uint64_t kArea = sizeof(AssistArea);
  const std::uint64_t offset = offsetof(Shared, assist) + index * kArea;
  if (!punch(party_.memory.shared_fd(), offset, kArea)) {
    for (AssistEntry& entry : party_.memory.shared().assist[index].entry) entry.state.store(0);
  }
  members_[index].state = Member::State::Free;
  free_.push_back(index);
}

void Inbound::ring(std::uint64_t bits) {
  const std::uint64_t one = 1;
  const std::uint32_t end = next_index_.load(std::memory_order_relaxed);
  const base::SpinGuard guard(lock_);
  for (std::uint32_t index = 1; index < end; ++index) {
    const int doorbell = members_[index].doorbell.get();
    if (doorbell < 0 || (bits >> (index & 63) & 1) == 0) continue;
    if (write(doorbell, &one, sizeof one) < 0) continue;
  }
}

int Inbound::doorbell_of(std::uint32_t index) const {
  return index < kPeers ? members_[index].doorbell.get() : -1;
}

}  // namespace vrb::local
