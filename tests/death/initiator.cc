// SPDX-License-Identifier: Apache-2.0
#include "initiator.h"

#include <cstring>

namespace vrb::death {
namespace {

constexpr std::size_t kMessages = kScratch;         // one place of kMessageBytes for each kind
constexpr std::size_t kResults = kScratch + 16384;  // the values that atomics bring back

// What each kind counts as: the stream of a message, 3 for none.
constexpr std::uint32_t kNoStream = 3;

}  // namespace

void Initiator::start(const Work& work, const Endpoint& remote) {
  work_ = work;
  remote_ = remote;
  running_ = true;
  const auto kept = outcome_.sent;
  outcome_ = {};
  outcome_.sent = kept;
}

bool Initiator::pump() {
  if (!running_ || outstanding_ != 0) return false;
  const bool over = outcome_.rounds >= work_.rounds || outcome_.failed + outcome_.flushed != 0;
  if (over) {
    running_ = false;
    return true;
  }
  post_round();
  return false;
}

void Initiator::post_round() {
  if ((work_.ops & (kWrite | kRead | kWriteImm)) != 0) post_one_sided();
  post_messages();
  if ((work_.ops & kAtomics) != 0) post_atomics();
}

void Initiator::post_one_sided() {
  const std::size_t bytes = write_bytes(total_rounds_, (work_.ops & kLong) != 0);
  if ((work_.ops & kWrite) != 0) {
    fill_pattern({region_.at(0), bytes}, seed());
    post(qps_.srq, Write, ib::Opcode::Write, region_.sge(0, bytes), {remote_.region, 0, 0});
  }
  if ((work_.ops & kRead) != 0) {
    post(qps_.srq, Read, ib::Opcode::Read, region_.sge(kReadBack, bytes), {remote_.region, 0, 0});
  }
  if ((work_.ops & kWriteImm) != 0) {
    const std::size_t place = kMessages + WriteImm * kMessageBytes;
    const auto stream = static_cast<std::size_t>(Stream::Srq);
    fill_pattern({region_.at(place), kImmBytes}, next_number_[stream]);
    post(qps_.srq, WriteImm, ib::Opcode::WriteWithImm, region_.sge(place, kImmBytes),
         {remote_.region + imm_place(next_number_[stream]), 0, 0});
  }
}

void Initiator::post_messages() {
  if ((work_.ops & kSend) != 0) post_message(qps_.srq, Send, Stream::Srq, Send);
  if ((work_.ops & kOwnSend) != 0) {
    post_message(qps_.own, Own1, Stream::Own, Own1);
    post_message(qps_.own, Own2, Stream::Own, Own2);
  }
  if ((work_.ops & kUd) != 0) post_message(qps_.ud, Ud, Stream::Ud, Ud);
}

void Initiator::post_message(engine::Qp* qp, Kind kind, Stream stream, std::size_t place) {
  const std::size_t offset = kMessages + place * kMessageBytes;
  const auto which = static_cast<std::uint32_t>(stream);
  write_message(region_.at(offset), {next_number_[which], session_, which});
  post(qp, kind, ib::Opcode::Send, region_.sge(offset, kWholeBytes), {0, 0, 0});
}

void Initiator::post_atomics() {
  post(qps_.own, FetchAdd, ib::Opcode::FetchAdd, region_.sge(kResults, 8),
       {remote_.region + kFetchAddWord, 3, 0});
  post(qps_.own, CompareSwap, ib::Opcode::CompareSwap, region_.sge(kResults + 8, 8),
       {remote_.region + kCompareSwapWord, atomics_, atomics_ + 1});
}

void Initiator::post(engine::Qp* qp, Kind kind, ib::Opcode opcode, ib::Sge sge, Target target) {
  queue::SendRequest request;
  request.wr_id = kSendWrId | kind;
  request.opcode = opcode;
  request.flags = ib::kSendSignaled;
  request.remote_addr = target.addr;
  request.rkey = remote_.rkey;
  request.compare_add = target.compare_add;
  request.swap = target.swap;
  if (kind == WriteImm || kind == Send) {
    request.imm = static_cast<std::uint32_t>(next_number_[0]++);
  } else if (kind == Own1 || kind == Own2) {
    ++next_number_[1];
  } else if (kind == Ud) {
    ++next_number_[2];
    request.ah = nic_.this_host();
    request.remote_qpn = remote_.ud_qpn;
    request.remote_qkey = kQkey;
  }
  request.sges = {&sge, 1};
  need(engine::post_send(qp, request), "post_send");
  ++outstanding_;
}

void Initiator::completed(const nic::Completion& completion) {
  if (outstanding_ == 0) fail("a completion of a send that was not posted");
  --outstanding_;
  if (completion.status == ib::WcStatus::WrFlushErr) {
    ++outcome_.flushed;
  } else if (completion.status != ib::WcStatus::Success) {
    if (outcome_.failed++ == 0) {
      outcome_.status = static_cast<std::uint32_t>(completion.status);
      outcome_.cause = completion.vendor_err;
    }
  } else {
    ++outcome_.completed;
    const auto kind = static_cast<Kind>(completion.wr_id & ~kSendWrId);
    const std::uint32_t stream = kind == Send || kind == WriteImm ? 0
                                 : kind == Own1 || kind == Own2   ? 1
                                 : kind == Ud                     ? 2
                                                                  : kNoStream;
    if (stream != kNoStream) ++outcome_.sent[stream];
  }
  if (outstanding_ != 0 || outcome_.failed + outcome_.flushed != 0) return;
  check_round();
  ++outcome_.rounds;
  ++total_rounds_;
}

std::uint64_t Initiator::result(std::size_t place) const {
  std::uint64_t value = 0;
  std::memcpy(&value, region_.at(kResults + place), sizeof value);
  return value;
}

// All operations of the round were successful: what came back must be what went out.
void Initiator::check_round() {
  if ((work_.ops & (kWrite | kRead)) == (kWrite | kRead)) {
    const std::size_t bytes = write_bytes(total_rounds_, (work_.ops & kLong) != 0);
    if (!has_pattern({region_.at(kReadBack), bytes}, seed())) ++outcome_.wrong;
  }
  if ((work_.ops & kAtomics) != 0) {
    if (result(0) != 3 * atomics_) ++outcome_.wrong;
    if (result(8) != atomics_) ++outcome_.wrong;
    ++atomics_;
  }
}

}  // namespace vrb::death
