// What a node that forks does in its child, and the idle role.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "node.h"

namespace vrb::death {

void Node::fork_child(const Message& order) {
  const pid_t child = fork();
  if (child < 0) fail("fork failed");
  if (child == 0) be_child(order.fork);
  // The child's end: the test sees the child go.
  if (order.fork != ForkKind::Exit) close(kSpareFd);
  children_.push_back(child);
  Message forked;
  forked.tag = Tag::Forked;
  forked.number = static_cast<std::uint32_t>(child);
  answer(forked);
}

// The first status of a forked child that is not 0. They end by themselves or by the test's order.
int Node::children_status() {
  int bad = 0;
  for (const pid_t child : children_) {
    int status = 0;
    waitpid(child, &status, 0);
    if (bad == 0 && status != 0) bad = WIFEXITED(status) ? WEXITSTATUS(status) : 9;
  }
  return bad;
}

void Node::exec_idle() {
  char role[] = "--role", idle[] = "idle", self[] = "/proc/self/exe";
  char* const arguments[] = {self, role, idle, nullptr};
  execv(self, arguments);
  _exit(4);
}

// A child's objects of its parent must refuse, not crash or reach its parent's peers.
void Node::check_forked_objects() {
  set_failure_socket(kSpareFd);
  nic::Completion completion;
  if (engine::poll_cq(nic_->cq(), {&completion, 1}) >= 0)
    fail("a forked child polled its parent's CQ");
  for (auto& [id, end] : sessions_) {
    queue::SendRequest request;
    const auto posted = engine::post_send(end->any_qp(), request);
    if (posted) fail("a forked child posted to its parent's QP");
    if (posted.error().cause.code != ib::CauseCode::Forked) fail("not the cause Forked");
  }
}

void Node::be_child(ForkKind kind) {
  close(control_);
  check_forked_objects();
  switch (kind) {
    case ForkKind::Exit:
      std::exit(0);
    case ForkKind::Hold: {
      Message ready;
      ready.tag = Tag::Ready;
      send(kSpareFd, ready);
      _exit(run_idle(kSpareFd));
    }
    case ForkKind::Exec:
      dup2(kSpareFd, kControlFd);
      close(kSpareFd);
      exec_idle();
    case ForkKind::Serve:
      break;
  }
  // What it inherited stays where it is: it belongs to the parent's engine.
  for (auto& [id, end] : sessions_) (void)end.release();
  (void)nic_.release();
  sessions_.clear();
  std::exit(Node(kSpareFd).run());
}

int run_idle(int control) {
  for (;;) {
    pollfd p{control, POLLIN, 0};
    poll(&p, 1, -1);
    Message order;
    const Got got = receive(control, order);
    if (got == Got::Closed || (got == Got::Message && order.tag == Tag::Quit)) return 0;
  }
}

}  // namespace vrb::death
