// SPDX-License-Identifier: Apache-2.0
#include "local/party.h"

#include <sys/epoll.h>
#include <sys/socket.h>

namespace vrb::local {

Ourselves Party::us() const {
  Ourselves now = identity;
  refresh(now);
  return now;
}

bool Party::watch(int fd, Token token) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = token.pack();
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Party::rewatch(int fd, Token token, bool readable) const {
  epoll_event event{};
  event.events = readable ? EPOLLIN | EPOLLRDHUP : 0;
  event.data.u64 = token.pack();
  epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

void Party::unwatch(int fd) const {
  if (fd >= 0) epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
}

ControlMessage Party::message(MessageType type, const Ourselves& us) const {
  ControlMessage message{};
  message.magic = kMagic;
  message.layout_version = kLayoutVersion;
  message.type = static_cast<std::uint32_t>(type);
  message.incarnation = memory.incarnation();
  message.user_ns = us.user_ns;
  message.pid_ns = us.pid_ns;
  message.net_ns = us.net_ns;
  message.flags = (us.dumpable ? kFlagDumpable : 0) | (us.wire_only ? kFlagWireOnly : 0);
  message.tables_bytes = kTablesBytes;
  message.shared_bytes = kSharedBytes;
  return message;
}

Identity credentials(int socket) {
  Identity identity;
  ucred peer{};
  socklen_t size = sizeof peer;
  identity.uid = ~0U;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return identity;
  identity.uid = peer.uid;
  identity.pid = peer.pid;
  return identity;
}

Identity told(Identity credentials, const ControlMessage& message) {
  credentials.user_ns = message.user_ns;
  credentials.pid_ns = message.pid_ns;
  credentials.net_ns = message.net_ns;
  credentials.dumpable = (message.flags & kFlagDumpable) != 0;
  credentials.wire_only = (message.flags & kFlagWireOnly) != 0;
  credentials.layout_version = message.layout_version;
  return credentials;
}

}  // namespace vrb::local
