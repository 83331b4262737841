// Misconception: zero copy means that nothing is copied, so that both sides share the bytes.
// SPDX-License-Identifier: Apache-2.0
#include "pair.h"

int main() {
  std::puts("claim:    \"zero copy means that nothing is copied\"");
  pair::End sender, target;
  pair::connect(sender, target);

  std::puts("done:     a WRITE; after its completion the sender changes its buffer");
  sender.set_text("version 1");
  pair::must(sender.post(IBV_WR_RDMA_WRITE, 1, 10) == 0, "ibv_post_send");
  pair::observe(pair::completed(sender.wait(), 1, IBV_WC_RDMA_WRITE), "the WRITE completed");
  sender.set_text("version 2");
  pair::observe(target.text() == "version 1",
                "the target still has \"" + target.text() + "\": the NIC moved a copy, once");

  std::puts("done:     an inline WRITE; the sender changes its buffer as soon as the post returns");
  sender.set_text("version 3");
  pair::must(sender.post(IBV_WR_RDMA_WRITE, 2, 10, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0,
             "ibv_post_send");
  sender.set_text("version 4");
  pair::observe(pair::completed(sender.wait(), 2, IBV_WC_RDMA_WRITE), "the inline WRITE completed");
  pair::observe(target.text() == "version 3", "the target has \"" + target.text() +
                                                  "\": inline data are copied by the post itself");
  return pair::result();
}
