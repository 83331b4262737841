// SPDX-License-Identifier: Apache-2.0
#include "local/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "local/layout.h"

namespace vrb::local {
namespace {

// Takes over the descriptors of a message; false when there are more than any message carries.
bool take_fds(msghdr& header, std::array<Fd, kMostFds>& fds, std::uint32_t& count) {
  bool fits = (header.msg_flags & MSG_CTRUNC) == 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = c->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      Fd taken = Fd::adopt(fd);
      if (!taken || count == kMostFds) {
        fits = false;
      } else {
        fds[count++] = std::move(taken);
      }
    }
  }
  return fits;
}

bool is_known(const ControlMessage& message, std::uint32_t fds) {
  if (message.magic != kMagic || message.type < 1 || message.type > 3) return false;
  const auto type = static_cast<MessageType>(message.type);
  // Another layout's messages may carry other descriptors; only its version is of interest.
  return message.layout_version != kLayoutVersion || fds == fds_of(type);
}

}  // namespace

bool send_message(int socket, const ControlMessage& message, std::initializer_list<int> fds) {
  iovec data{const_cast<ControlMessage*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFds * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fds.size() != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.begin(), fds.size() * sizeof(int));
  }
  return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

Received receive_message(int socket, Incoming& incoming) {
  ControlMessage message{};
  iovec data{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE((kMostFds + 1) * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return later ? Received::Nothing : Received::HungUp;
  }
  std::uint32_t count = 0;
  const bool fits = take_fds(header, incoming.fds, count);
  if (n == 0) return Received::HungUp;
  const bool whole =
      n == static_cast<ssize_t>(sizeof message) && (header.msg_flags & MSG_TRUNC) == 0;
  if (!fits || !whole || !is_known(message, count)) return Received::Garbage;
  incoming.message = message;
  return Received::Message;
}

bool is_doorbell(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || (flags & O_ACCMODE) == O_RDONLY) return false;
  char path[32] = "/proc/self/fd/";
  char digits[12];
  std::size_t used = 0;
  for (int rest = fd; rest != 0 || used == 0; rest /= 10)
    digits[used++] = static_cast<char>('0' + rest % 10);
  char* end = path + std::strlen(path);
  while (used != 0) *end++ = digits[--used];
  char target[32];
  const ssize_t n = readlink(path, target, sizeof target);
  if (n >= 0)
    return std::string_view(target, static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
  // No /proc: of the anonymous files none but an eventfd takes eight bytes and waits for room.
  struct stat st {};
  return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == 0;
}

}  // namespace vrb::local
