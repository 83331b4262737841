// Misconception: a completion at the sender means that the remote application has seen the data.
// Here the remote application is stopped (SIGSTOP) from before the WRITE until after its
// completion.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "pair.h"

namespace {

pair::Address exchange(int socket, const pair::Address& own) {
  pair::Address remote;
  pair::must(write(socket, &own, sizeof own) == sizeof own, "write");
  pair::must(read(socket, &remote, sizeof remote) == sizeof remote, "read");
  return remote;
}

// Stops itself; when it goes on it reads the data and says so by a SEND of its own.
int target(int socket) {
  pair::End end;
  end.connect(exchange(socket, end.address()));
  exchange(socket, end.address());  // connected
  exchange(socket, end.address());  // the path is up
  std::raise(SIGSTOP);
  const std::string seen = end.text();
  end.set_text("seen: " + seen, 1024);
  pair::must(end.post(IBV_WR_SEND, 1, 64, IBV_SEND_SIGNALED, 1024) == 0, "ibv_post_send");
  end.wait();
  char until_the_sender_is_done = 0;
  return read(socket, &until_the_sender_is_done, 1) == 0 ? 0 : 1;
}

int sender(int socket, pid_t child) {
  pair::End end;
  end.connect(exchange(socket, end.address()));
  end.post_recv(100, 2048, 64);
  exchange(socket, end.address());  // connected
  pair::must(end.post(IBV_WR_RDMA_WRITE, 0, 1) == 0, "ibv_post_send");
  pair::must(end.wait().status == IBV_WC_SUCCESS, "the first WRITE");
  exchange(socket, end.address());  // the path is up
  int status = 0;
  pair::must(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "SIGSTOP");
  std::puts("done:     the target's process is stopped; the sender posts a WRITE");

  end.set_text("news");
  pair::must(end.post(IBV_WR_RDMA_WRITE, 1, 5) == 0, "ibv_post_send");
  pair::observe(pair::completed(end.wait(), 1, IBV_WC_RDMA_WRITE), "the WRITE completed: success");
  pair::observe(waitpid(child, &status, WNOHANG | WCONTINUED) == 0,
                "the target's process has not run meanwhile: it can have seen nothing");
  std::puts("done:     the target goes on, reads its memory and answers with a SEND");
  kill(child, SIGCONT);
  const ibv_wc answer = end.wait();
  pair::observe(pair::completed(answer, 100, IBV_WC_RECV) && end.text(2048) == "seen: news",
                "only its answer tells: \"" + end.text(2048) + "\"");
  close(socket);
  pair::must(waitpid(child, &status, 0) == child && status == 0, "the target failed");
  return pair::result();
}

}  // namespace

int main() {
  std::puts(
      "claim:    \"a completion at the sender means that the remote application saw the data\"");
  std::fflush(stdout);
  int sockets[2];
  pair::must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const pid_t child = fork();  // before the device is opened
  close(sockets[child == 0 ? 0 : 1]);
  return child == 0 ? target(sockets[1]) : sender(sockets[0], child);
}
