// The sending process of the journey: it posts the WRITE and polls for its completion.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "side.h"

namespace journey {
namespace {

constexpr std::size_t kMore = 1000;

struct Post {
  std::int64_t start = 0, end = 0;
};

Post post_write(Side& side, Reporter& report, Kind kind, std::uint32_t rkey) {
  ibv_sge sge = {};
  sge.addr = reinterpret_cast<std::uint64_t>(side.memory());
  sge.length = kBytes;
  sge.lkey = side.mr()->lkey;
  ibv_send_wr wr = {}, *bad = nullptr;
  wr.wr_id = kWriteId;
  wr.opcode = kind == Kind::WriteWithImm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htobe32(kImmediate);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = side.remote().buffer;
  wr.wr.rdma.rkey = rkey;
  Post post;
  post.start = now_ns();
  const int refused = ibv_post_send(side.qp(), &wr, &bad);
  post.end = now_ns();
  report.must(refused == 0, "ibv_post_send");
  return post;
}

void report_post(Side& side, Reporter& report, Kind kind, std::uint32_t rkey, const Post& post) {
  const Address& to = side.remote();
  report.note(Type::Posted, post.start);
  report.call(3, "ibv_post_send", post.end - post.start,
              "%s, wr_id %d: %zu B at %p (L_Key 0x%x) to 0x%llx (R_Key 0x%x%s)",
              kind == Kind::WriteWithImm ? "RDMA_WRITE_WITH_IMM" : "RDMA_WRITE",
              static_cast<int>(kWriteId), kBytes, static_cast<void*>(side.memory()),
              side.mr()->lkey, static_cast<unsigned long long>(to.buffer), rkey,
              kind == Kind::WrongKey ? ", which nobody gave out" : "");
  if (kind == Kind::WrongKey) return;
  report.line(4, Actor::SenderNic, "DMA read", Time::Before, 0, "%zu B at %p, as L_Key 0x%x allows",
              kBytes, static_cast<void*>(side.memory()), side.mr()->lkey);
}

void report_completion(Side& side, Reporter& report, const ibv_wc& wc, std::int64_t at) {
  report.line(7, Actor::SenderCpu, "ibv_poll_cq", Time::At, at, "wr_id %d: %s (status %d)%s",
              static_cast<int>(wc.wr_id), ibv_wc_status_str(wc.status), wc.status,
              wc.status == IBV_WC_SUCCESS ? ", RDMA_WRITE" : "");
  if (wc.status == IBV_WC_SUCCESS) return;
  report.line(7, Actor::SenderCpu, "", Time::None, 0, "vendor_err %u: the number of the cause",
              wc.vendor_err);
  report.line(7, Actor::SenderCpu, "ibv_query_qp", Time::None, 0, "QP 0x%06x is in state %s",
              side.qp()->qp_num, state_name(side.state()));
}

// Many more of the same, one after the other: the first has paid for meeting the other process.
void repeat(Side& side, Reporter& report) {
  std::vector<std::int64_t> times(kMore);
  for (std::int64_t& time : times) {
    const Post post = post_write(side, report, Kind::Write, side.remote().rkey);
    std::int64_t at = 0;
    report.expect(side.wait(at).status == IBV_WC_SUCCESS, "a further WRITE");
    time = at - post.start;
  }
  std::nth_element(times.begin(), times.begin() + kMore / 2, times.end());
  report.note(Type::Warm, times[kMore / 2]);
}

void send_one(Reporter& report, int peer, Kind kind) {
  report.begin(kind);
  Side side(report, peer);
  side.prepare();
  std::snprintf(side.memory(), kBytes, "Hello from process %d.", getpid());
  side.memory()[kBytes - 1] = '!';
  side.meet();  // the receiver is ready

  const std::uint32_t rkey = side.remote().rkey + (kind == Kind::WrongKey ? 1 : 0);
  const Post post = post_write(side, report, kind, rkey);
  std::int64_t at = 0;
  const ibv_wc wc = side.wait(at);
  report_post(side, report, kind, rkey, post);
  report_completion(side, report, wc, at);
  if (wc.status != IBV_WC_SUCCESS) report.note(Type::Cause, 0, report.captured().c_str());
  const ibv_wc_status expected = kind == Kind::WrongKey ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
  report.expect(wc.status == expected, "the WRITE ended otherwise than expected");
  side.meet();  // the receiver may look
  side.meet();  // and has looked
  if (kind == Kind::Write) repeat(side, report);
  side.meet();
  report.note(Type::End, 0);
}

}  // namespace

void run_sender(Reporter& reporter, int peer) {
  for (const Kind kind : kKinds) send_one(reporter, peer, kind);
}

}  // namespace journey
