// Misconception: a send without IBV_SEND_SIGNALED frees its place in the send queue by itself.
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "pair.h"

namespace {

constexpr unsigned kSignalled = IBV_SEND_SIGNALED;
constexpr unsigned kUnsignalled = 0;

// Posts WRITEs of one byte each, `count` of them; returns how many were taken.
uint32_t post_all(pair::End& end, uint32_t count, bool last_is_signalled) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool signalled = last_is_signalled && i + 1 == count;
    if (end.post(IBV_WR_RDMA_WRITE, i, 1, signalled ? kSignalled : kUnsignalled, i) != 0) {
      return i;
    }
  }
  return count;
}

// The last byte has arrived, so by the order of RC all WRITEs before it are done.
void wait_for_byte(pair::End& target, uint32_t at) {
  while (*static_cast<volatile char*>(target.memory(at)) == 0) {
  }
}

}  // namespace

int main() {
  std::puts("claim:    \"an unsignalled send frees its place in the send queue by itself\"");
  pair::End sender({.send_wrs = 8}), target;
  pair::connect(sender, target);
  const uint32_t places = sender.send_wrs();
  pair::must(places <= 2048, "the send queue is larger than the buffer");
  std::memset(sender.memory(), 'x', 4096);
  const std::string all = std::to_string(places);

  std::printf("done:     %u unsignalled WRITEs into a send queue of %u\n", places, places);
  pair::observe(post_all(sender, places, false) == places, "all " + all + " were taken");
  wait_for_byte(target, places - 1);
  ibv_wc wc = {};
  pair::observe(!sender.poll(wc), "all were carried out, and none left a completion");
  pair::observe(sender.post(IBV_WR_RDMA_WRITE, 99, 1) == ENOMEM,
                "yet the next post is refused (ENOMEM): all places are still taken, for good");

  std::puts("done:     the same on a fresh pair, the last of them signalled");
  pair::End sender2({.send_wrs = 8}), target2;
  pair::connect(sender2, target2);
  std::memset(sender2.memory(), 'x', 4096);
  pair::must(post_all(sender2, places, true) == places, "ibv_post_send");
  pair::observe(pair::completed(sender2.wait(), places - 1, IBV_WC_RDMA_WRITE),
                "one completion, that of the last");
  pair::observe(post_all(sender2, places, true) == places,
                "polling it freed all places: another " + all + " were taken");
  pair::observe(pair::completed(sender2.wait(), places - 1, IBV_WC_RDMA_WRITE), "and completed");
  return pair::result();
}
