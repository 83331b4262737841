// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include <sys/socket.h>

#include <cerrno>

namespace vrb::death {

bool send(int socket, const Message& message) {
  return ::send(socket, &message, sizeof message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

Got receive(int socket, Message& message) {
  const ssize_t n = recv(socket, &message, sizeof message, MSG_DONTWAIT);
  if (n == static_cast<ssize_t>(sizeof message)) return Got::Message;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Got::Nothing;
  return Got::Closed;
}

}  // namespace vrb::death
