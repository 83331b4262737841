// Misconception: an RDMA WRITE needs a receive that the target posted beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "pair.h"

int main() {
  std::puts("claim:    \"an RDMA WRITE needs a posted receive\"");
  pair::End sender({.rnr_retry = 0}), target;
  pair::connect(sender, target);
  std::puts("done:     the target posted no receive; the sender posts a plain RDMA WRITE");

  sender.set_text("written without a receive");
  pair::must(sender.post(IBV_WR_RDMA_WRITE, 1, 26) == 0, "ibv_post_send");
  const ibv_wc plain = sender.wait();
  pair::observe(pair::completed(plain, 1, IBV_WC_RDMA_WRITE),
                std::string("the WRITE completed: ") + ibv_wc_status_str(plain.status));
  pair::observe(target.text() == "written without a receive",
                "the target's memory holds \"" + target.text() + "\"");

  std::puts("done:     still no receive; now a WRITE_WITH_IMM, with rnr_retry = 0");
  pair::must(sender.post(IBV_WR_RDMA_WRITE_WITH_IMM, 2, 26) == 0, "ibv_post_send");
  const ibv_wc with_imm = sender.wait();
  pair::observe(with_imm.status == IBV_WC_RNR_RETRY_EXC_ERR,
                std::string("that one does need a receive: ") + ibv_wc_status_str(with_imm.status));
  return pair::result();
}
