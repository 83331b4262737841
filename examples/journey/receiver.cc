// The receiving process of the journey. Nothing of it is needed for a plain WRITE; it only watches
// its memory, to take the time at which the bytes appear.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "side.h"

namespace journey {
namespace {

constexpr int kEventTimeout = 20'000;  // ms

void post_receive(Side& side, Reporter& report, Kind kind) {
  if (kind != Kind::WriteWithImm) {
    report.line(2, Actor::ReceiverCpu, "no ibv_post_recv", Time::None, 0,
                "a plain WRITE needs none: the R_Key is enough");
    return;
  }
  ibv_recv_wr wr = {}, *bad = nullptr;
  wr.wr_id = kRecvId;
  const std::int64_t start = now_ns();
  const int refused = ibv_post_recv(side.qp(), &wr, &bad);
  const std::int64_t took = now_ns() - start;
  report.must(refused == 0, "ibv_post_recv");
  report.call(
      2, "ibv_post_recv", took,
      "wr_id %d, without a buffer: it takes only the immediate data, the bytes go where the "
      "WRITE says",
      static_cast<int>(kRecvId));
}

// When the byte became other than zero.
std::int64_t watch(const volatile char& byte) {
  while (byte == 0) {
  }
  return now_ns();
}

void watch_arrival(Side& side, Reporter& report) {
  const std::int64_t first = watch(side.memory()[0]);
  const std::int64_t last = watch(side.memory()[kBytes - 1]);
  const char* carrier = getenv("VERBENA_CARRIER");
  if (carrier != nullptr && std::strcmp(carrier, "wire") == 0) {
    report.line(5, Actor::Network, "wire carrier", Time::At, first,
                "RoCEv2 packets; the first byte is there");
  } else {
    report.line(5, Actor::Network, "local carrier", Time::At, first,
                "same host, so no packet: the first byte is there");
  }
  report.line(6, Actor::ReceiverNic, "DMA write", Time::At, last,
              "R_Key 0x%x, range and access are right; wrote %zu B at %p: \"%s\"", side.mr()->rkey,
              kBytes, static_cast<void*>(side.memory()), side.memory());
}

void await_completion(Side& side, Reporter& report) {
  std::int64_t at = 0;
  const ibv_wc wc = side.wait(at);
  report.expect(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
                    wc.wr_id == kRecvId && be32toh(wc.imm_data) == kImmediate,
                "the receive completed otherwise than expected");
  report.line(7, Actor::ReceiverCpu, "ibv_poll_cq", Time::At, at,
              "wr_id %d: success, RECV_RDMA_WITH_IMM, immediate data %u",
              static_cast<int>(wc.wr_id), be32toh(wc.imm_data));
}

void expect_no_completion(Side& side, Reporter& report, const char* why) {
  ibv_wc wc = {};
  report.expect(ibv_poll_cq(side.cq(), 1, &wc) == 0, "the receiver got a completion");
  report.line(7, Actor::ReceiverCpu, "ibv_poll_cq", Time::None, 0, "no completion: %s", why);
}

void expect_access_error(Side& side, Reporter& report) {
  const bool untouched =
      std::all_of(side.memory(), side.memory() + kBytes, [](char c) { return c == 0; });
  report.expect(untouched, "the refused WRITE changed memory");
  report.line(6, Actor::ReceiverNic, "access check", Time::None, 0,
              "refused: none of the %zu B at %p changed", kBytes,
              static_cast<void*>(side.memory()));
  pollfd ready = {.fd = side.context()->async_fd, .events = POLLIN, .revents = 0};
  report.expect(poll(&ready, 1, kEventTimeout) == 1, "no asynchronous event came");
  ibv_async_event event = {};
  report.must(ibv_get_async_event(side.context(), &event) == 0, "ibv_get_async_event");
  report.line(7, Actor::ReceiverCpu, "ibv_get_async_event", Time::None, 0,
              "%s: QP 0x%06x is in state %s, too", ibv_event_type_str(event.event_type),
              side.qp()->qp_num, state_name(side.state()));
  ibv_ack_async_event(&event);
  report.note(Type::Cause, 0, report.captured().c_str());
  report.expect(event.event_type == IBV_EVENT_QP_ACCESS_ERR, "another event was expected");
}

void receive_one(Reporter& report, int peer, Kind kind) {
  report.begin(kind);
  Side side(report, peer);
  side.prepare();
  post_receive(side, report, kind);
  side.meet();  // ready
  if (kind != Kind::WrongKey) watch_arrival(side, report);
  if (kind == Kind::WriteWithImm) await_completion(side, report);
  side.meet();  // the sender has its completion
  if (kind == Kind::Write) {
    expect_no_completion(side, report, "a plain WRITE gives the target none");
  }
  if (kind == Kind::WrongKey) expect_access_error(side, report);
  side.meet();
  side.meet();  // the sender will not write again
  report.note(Type::End, 0);
}

}  // namespace

void run_receiver(Reporter& reporter, int peer) {
  for (const Kind kind : kKinds) receive_one(reporter, peer, kind);
}

}  // namespace journey
