// The assist tier between two processes, as it is where CMA is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <sstream>

#include "local/test_support.h"

namespace vrb::local::testing {
namespace {

using ib::CauseCode;

TrustPolicy without_cma() {
  TrustPolicy policy;
  policy.no_cma = true;
  return policy;
}

// With false the target may not use process_vm_* at all, not even on itself.
class Assist : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    peer_ = node_.reach_slot(helper_.slot);
    ASSERT_EQ(peer_->state(), PeerState::Ready);
    node_.turn();
    ASSERT_FALSE(peer_->cma);
    // The target's bell for us is the inbound side of its own connection to us.
    helper_.tell("find " + std::to_string(node_.slot));
    node_.until([&] { return helper_.has_answer(); });
    helper_.hear();
    std::istringstream answer(helper_.ask("region 20000 f"));
    answer >> key_ >> at_;
  }

  AssistRequest request(AssistOp op, std::uint32_t need) const {
    AssistRequest r;
    r.op = op;
    r.key = key_;
    r.need = need;
    r.pd = 7;
    r.addr = at_;
    return r;
  }
  AssistResult run(const AssistRequest& r, std::vector<std::byte>& data) {
    const Segment local[] = {{reinterpret_cast<std::uint64_t>(data.data()), data.size()}};
    const int entry = submit_assist(*peer_, r, local, 0);
    EXPECT_GE(entry, 0);
    EXPECT_TRUE(node_.until([&] { return assist_done(*peer_, entry); }));
    return take_assist(*peer_, entry, local, 0, r.length);
  }

  Node node_{without_cma()};
  Helper helper_{GetParam() ? std::vector<std::string>{}
                            : std::vector<std::string>{"--no-vm-calls"}};
  std::shared_ptr<Peer> peer_;
  std::uint32_t key_ = 0;
  std::uint64_t at_ = 0;
};

TEST_P(Assist, PutAndGet) {
  std::vector<std::byte> data(kAssistSlab), seen(kAssistSlab);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 13);
  AssistRequest r = request(AssistOp::Put, ib::kRemoteWrite);
  r.length = kAssistSlab;
  EXPECT_EQ(run(r, data).status, CauseCode::None);
  r.op = AssistOp::Get;
  r.need = ib::kRemoteRead;
  EXPECT_EQ(run(r, seen).status, CauseCode::None);
  EXPECT_EQ(seen, data);
  r.length = 1;
  r.addr += 77;
  std::vector<std::byte> one(1);
  EXPECT_EQ(run(r, one).status, CauseCode::None);
  EXPECT_EQ(one[0], data[77]);
}

TEST_P(Assist, Atomics) {
  std::vector<std::byte> none;
  AssistRequest r = request(AssistOp::FetchAdd, ib::kRemoteAtomic);
  r.length = 8;
  r.compare_add = 40;
  EXPECT_EQ(run(r, none).before, 0U);
  EXPECT_EQ(run(r, none).before, 40U);
  r.op = AssistOp::CompareSwap;
  r.compare_add = 80;
  r.swap = 5;
  EXPECT_EQ(run(r, none).before, 80U);
  r.compare_add = 6;
  const AssistResult failed = run(r, none);
  EXPECT_EQ(failed.before, 5U);
  EXPECT_EQ(failed.status, CauseCode::None);
  r.addr += 4;
  EXPECT_EQ(run(r, none).status, CauseCode::AtomicMisaligned);
  std::ostringstream read;
  read << "read " << std::hex << at_;
  EXPECT_EQ(helper_.ask(read.str()), "5");
}

TEST_P(Assist, WhatIsNotGranted) {
  std::vector<std::byte> data(100);
  AssistRequest r = request(AssistOp::Put, ib::kRemoteWrite);
  r.length = 100;
  AssistRequest wrong = r;
  wrong.key ^= 0x100;
  EXPECT_EQ(run(wrong, data).status, CauseCode::KeyUnknown);
  wrong = r;
  wrong.pd = 8;
  EXPECT_EQ(run(wrong, data).status, CauseCode::KeyOtherPd);
  wrong = r;
  wrong.addr = at_ + 0x20000 - 99;
  EXPECT_EQ(run(wrong, data).status, CauseCode::KeyRange);
  wrong = r;
  wrong.op = static_cast<AssistOp>(99);
  EXPECT_EQ(run(wrong, data).status, CauseCode::BadOpcode);
  std::istringstream answer(helper_.ask("region 1000 1"));  // local write only
  answer >> key_ >> at_;
  AssistRequest asks_nothing = request(AssistOp::Put, 0);
  asks_nothing.length = 8;
  EXPECT_EQ(run(asks_nothing, data).status, CauseCode::KeyAccess);
  asks_nothing.op = AssistOp::Get;
  EXPECT_EQ(run(asks_nothing, data).status, CauseCode::KeyAccess);
  asks_nothing.op = AssistOp::FetchAdd;
  EXPECT_EQ(run(asks_nothing, data).status, CauseCode::KeyAccess);
  asks_nothing.op = AssistOp::Put;
  asks_nothing.need = ib::kLocalWrite;  // a receive buffer
  EXPECT_EQ(run(asks_nothing, data).status, CauseCode::None);
}

TEST_P(Assist, MemoryThatHasGoneAtThePeer) {
  std::ostringstream unmap;
  unmap << "unmap " << std::hex << at_ + 0x1000 << " 1000";
  helper_.ask(unmap.str());
  std::vector<std::byte> data(0x3000);
  AssistRequest r = request(AssistOp::Put, ib::kRemoteWrite);
  r.length = 0x3000;
  EXPECT_EQ(run(r, data).status, CauseCode::MemoryGone);
  r.op = AssistOp::Get;
  r.need = ib::kRemoteRead;
  EXPECT_EQ(run(r, data).status, CauseCode::MemoryGone);
  r.op = AssistOp::FetchAdd;
  r.need = ib::kRemoteAtomic;
  r.addr += 0x1000;
  EXPECT_EQ(run(r, data).status, CauseCode::MemoryGone);
}

TEST_P(Assist, OurOwnMemoryThatHasGone) {
  auto* gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Segment local[] = {{reinterpret_cast<std::uint64_t>(gone), 64}};
  AssistRequest r = request(AssistOp::Put, ib::kRemoteWrite);
  r.length = 64;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(submit_assist(*peer_, r, local, 0), -2);
  r.op = AssistOp::Get;
  r.need = ib::kRemoteRead;
  const int entry = submit_assist(*peer_, r, local, 0);
  ASSERT_GE(entry, 0);
  ASSERT_TRUE(node_.until([&] { return assist_done(*peer_, entry); }));
  EXPECT_EQ(take_assist(*peer_, entry, local, 0, 64).status, CauseCode::LocalMemoryGone);
  munmap(gone, 4096);
}

TEST_P(Assist, AStoppedTargetAndDroppedRequests) {
  helper_.kill(SIGSTOP);
  std::vector<std::byte> data(8);
  const Segment local[] = {{reinterpret_cast<std::uint64_t>(data.data()), 8}};
  AssistRequest r = request(AssistOp::FetchAdd, ib::kRemoteAtomic);
  r.length = 8;
  r.compare_add = 1;
  std::vector<int> entries;
  for (std::uint32_t i = 0; i < kAssistEntries; ++i)
    entries.push_back(submit_assist(*peer_, r, local, 0));
  EXPECT_EQ(submit_assist(*peer_, r, local, 0), -1);
  for (const int entry : entries) {
    EXPECT_GE(entry, 0);
    EXPECT_FALSE(assist_done(*peer_, entry));
    drop_assist(*peer_, entry);  // withdrawn: nobody has begun
  }
  const int last = submit_assist(*peer_, r, local, 0);
  ASSERT_GE(last, 0);
  helper_.kill(SIGCONT);
  ASSERT_TRUE(node_.until([&] { return assist_done(*peer_, last); }));
  drop_assist(*peer_, last);  // done, but nobody takes it
  for (std::uint32_t i = 0; i < 3 * kAssistEntries; ++i) {
    EXPECT_EQ(run(r, data).before, 1 + i);
  }
}

TEST_P(Assist, GarbageInTheAreaDoesNoHarm) {
  AssistArea& area = peer_->shared->assist[peer_->index];
  for (std::uint32_t i = 0; i < 200; ++i) {
    AssistEntry& entry = area.entry[i % kAssistEntries];
    std::memset(reinterpret_cast<std::byte*>(&entry) + 4, static_cast<int>(i), sizeof entry - 4);
    entry.state.store(AssistEntry::kRequested);
    set_due(peer_->shared->due[static_cast<std::size_t>(DueKind::Peer)], i * 5);
    set_due(peer_->shared->due[static_cast<std::size_t>(DueKind::Peer)], peer_->index);
    peer_->ring();
    ASSERT_TRUE(node_.until([&] { return entry.state.load() == AssistEntry::kDone; }));
    ASSERT_NE(entry.status, 0U);
    entry.state.store(AssistEntry::kFree);
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutVmCalls, Assist, ::testing::Bool());

}  // namespace
}  // namespace vrb::local::testing
