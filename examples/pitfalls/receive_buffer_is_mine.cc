// Misconception: the buffer of a posted receive may be used for something else before its
// completion.
// SPDX-License-Identifier: Apache-2.0
#include "pair.h"

int main() {
  std::puts("claim:    \"a receive buffer may be reused before its completion\"");
  pair::End sender, receiver;
  pair::connect(sender, receiver);
  receiver.post_recv(100, 0, 64);
  receiver.post_recv(101, 1024, 64);
  std::puts(
      "done:     the receiver posted two receives, and keeps a note of its own in the first "
      "buffer");
  receiver.set_text("my own note");
  ibv_wc wc = {};
  pair::observe(!receiver.poll(wc) && receiver.text() == "my own note",
                "nothing has arrived yet, the note is there");

  sender.set_text("a message");
  pair::must(sender.post(IBV_WR_SEND, 1, 10) == 0, "ibv_post_send");
  pair::observe(pair::completed(sender.wait(), 1, IBV_WC_SEND), "a SEND arrives");
  pair::observe(receiver.text() == "a message",
                "the note is gone, the buffer holds \"" + receiver.text() + "\"");
  pair::observe(pair::completed(receiver.wait(), 100, IBV_WC_RECV),
                "the completion of receive 100: from here on its buffer is the receiver's");

  std::puts("done:     the receiver writes its note again, another SEND arrives");
  receiver.set_text("my own note");
  pair::must(sender.post(IBV_WR_SEND, 2, 10) == 0, "ibv_post_send");
  pair::observe(pair::completed(receiver.wait(), 101, IBV_WC_RECV) &&
                    receiver.text(1024) == "a message" && receiver.text() == "my own note",
                "it went into the buffer of receive 101; the note stayed");
  return pair::result();
}
