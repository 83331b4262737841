// Misconception: the target of an RDMA WRITE gets a completion for it.
// SPDX-License-Identifier: Apache-2.0
#include "pair.h"

int main() {
  std::puts("claim:    \"the target gets a completion for an RDMA WRITE\"");
  pair::End sender, target;
  pair::connect(sender, target);
  target.post_recv(100, 2048, 64);
  std::puts(
      "done:     the target posted one receive; the sender posts a WRITE, then a WRITE_WITH_IMM");

  sender.set_text("first");
  sender.set_text("second", 64);
  pair::must(sender.post(IBV_WR_RDMA_WRITE, 1, 6) == 0, "ibv_post_send");
  pair::observe(pair::completed(sender.wait(), 1, IBV_WC_RDMA_WRITE), "the WRITE completed");
  pair::observe(target.text() == "first", "its bytes are in the target's memory");
  ibv_wc wc = {};
  pair::observe(!target.poll(wc), "the target's CQ is empty");

  pair::must(sender.post(IBV_WR_RDMA_WRITE_WITH_IMM, 2, 7, IBV_SEND_SIGNALED, 64) == 0,
             "ibv_post_send");
  pair::observe(pair::completed(sender.wait(), 2, IBV_WC_RDMA_WRITE),
                "the WRITE_WITH_IMM completed");
  wc = target.wait();
  pair::observe(pair::completed(wc, 100, IBV_WC_RECV_RDMA_WITH_IMM) && be32toh(wc.imm_data) == 2,
                "the target's first completion is that of the WRITE_WITH_IMM, immediate data 2");
  pair::observe(target.text(64) == "second" && target.text(2048).empty(),
                "its bytes went where the WRITE said, not into the buffer of the receive");
  return pair::result();
}
