// What the death tests and their roles say to each other: one fixed-size message on a
// SOCK_SEQPACKET pair. The parent orders, a node answers; a node also tells progress and failures
// unasked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace vrb::death {

enum class Tag : std::uint32_t {
  // Orders of the parent.
  Open,    // make the device, the CQ, the SRQ          -> Opened
  Pair,    // make the QPs and the memory of a session  -> Paired
  Link,    // connect them to `end`                     -> Linked
  Run,     // be the initiator of `work`                -> Ran, Progress meanwhile
  Halt,    // end the work after the present round      -> Ran
  Drop,    // destroy the session's QPs and memory      -> Dropped
  Dereg,   // take the session's memory away, mark it   -> Deregistered
  Look,    // what lies in the session's memory         -> Looked
  Count,   // what is held                              -> Counted
  Hold,    // post no receives to the SRQ any more      -> Held
  Refill,  // post as many as fit, and go on            -> Refilled
  Fork,    // see `ForkKind`                            -> Forked
  Exec,    // become the idle role
  Passes,  // how often points were passed          -> Passed, one for each, and one without a name
  Quit,    // destroy all and exit with status 0
  // Answers of a node.
  Opened,
  Paired,
  Linked,
  Progress,
  Ran,
  Dropped,
  Deregistered,
  Looked,
  Counted,
  Held,
  Refilled,
  Forked,
  Passed,
  Ready,    // of a child that holds
  Arrived,  // `number` messages of a session so far, when Open asked for it
  Failed,   // `text` says what; the node then exits with status 3
};

enum class ForkKind : std::uint32_t {
  Serve,  // the child opens the device anew and is a node on the spare socket
  Hold,   // the child does nothing until the spare socket closes
  Exit,   // the child ends at once by exit()
  Exec,   // the child becomes the idle role on the spare socket
};

// Where one side of a session can be reached.
struct Endpoint {
  std::uint32_t srq_qpn = 0, own_qpn = 0, ud_qpn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t region = 0;
};

// Kinds of operations of a round; a round posts each of its kinds once (OwnSend: twice).
enum Op : std::uint32_t {
  kWrite = 1,
  kSend = 2,      // to the SRQ
  kWriteImm = 4,  // to the SRQ
  kRead = 8,
  kOwnSend = 16,  // to a receive queue that is too short for both
  kAtomics = 32,  // FETCH_AND_ADD and CMP_AND_SWP
  kUd = 64,
  kLong = 128,  // every 16th WRITE is longer than a slice
  kAllOps = 255,
};

struct Work {
  std::uint32_t rounds = 0;
  std::uint32_t ops = kAllOps;
  std::uint32_t progress_every = 0;  // rounds; 0: never
};

// The clocks of the RC QPs (ibv_modify_qp(3)).
struct Clocks {
  std::uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7;
};

// What a target finds in its region.
struct View {
  bool last_write = false;  // the bytes of the WRITE of round `number` of the session
  bool untouched = false;   // zeroes, or after Dereg the mark
  std::uint64_t fetch_add = 0, compare_swap = 0;
  std::uint64_t took_us = 0;  // Dereg: how long it took
};

struct Outcome {
  std::uint64_t rounds = 0;  // done, all their operations successful
  std::uint64_t completed = 0, failed = 0, flushed = 0;
  std::uint32_t status = 0, cause = 0;  // of the first completion in error that is not a flush
  std::uint32_t wrong = 0;              // bytes, values or orders that are not what they must be
  std::array<std::uint64_t, 3> sent{};  // messages that completed, by Stream
  std::array<std::uint64_t, 3> received{};  // messages that arrived, by Stream
};

struct Held {
  std::uint32_t fds = 0;
  std::uint32_t maps = 0;      // mappings of NIC memory, our own and peers'
  std::uint64_t blocks = 0;    // of 512 bytes, in our own NIC memory
  std::uint32_t receives = 0;  // posted to the SRQ and not completed
};

struct Message {
  Tag tag = Tag::Open;
  std::uint32_t session = 0;
  std::uint32_t number = 0;  // Progress: rounds; Held: receives posted; Refilled: newly posted;
                             // Forked: the pid; Passed
  ForkKind fork = ForkKind::Exit;
  bool polling = false;          // Open: poll instead of sleeping for events
  bool tell_arrivals = false;    // Open
  std::uint32_t cq_entries = 0;  // Open: 0 = the usual
  Endpoint end;
  Clocks clocks;
  Work work;
  Outcome outcome;
  Held held;
  View view;
  std::array<char, 160> text{};
};

// False: the other end has gone.
bool send(int socket, const Message& message);
enum class Got : std::uint8_t { Message, Nothing, Closed };
Got receive(int socket, Message& message);  // does not wait

}  // namespace vrb::death
