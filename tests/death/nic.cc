// SPDX-License-Identifier: Apache-2.0
#include "nic.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "message.h"

namespace vrb::death {
namespace {

int g_failure_socket = -1;

}  // namespace

void set_failure_socket(int socket) { g_failure_socket = socket; }

void fail(const std::string& text) {
  Message message;
  message.tag = Tag::Failed;
  text.copy(message.text.data(), message.text.size() - 1);
  send(g_failure_socket, message);
  _exit(3);
}

Region::Region(engine::Pd* pd, std::size_t bytes) : bytes_(bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) fail("mmap: " + std::string(std::strerror(errno)));
  base_ = static_cast<std::byte*>(at);
  constexpr std::uint32_t kAccess = ib::kLocalWrite | ib::kRemoteAccess;
  info_ = need(engine::reg_mr(pd, at, bytes, address(), kAccess), "reg_mr");
}

void Region::withdraw() {
  if (info_.mr != nullptr) need(engine::dereg_mr(info_.mr), "dereg_mr");
  info_ = {};
}

Region::~Region() {
  withdraw();
  munmap(base_, bytes_);
}

Nic::Nic(std::uint32_t cq_entries) {
  context_ = need(engine::open_device(nullptr), "open_device");
  pd_ = need(engine::alloc_pd(context_), "alloc_pd");
  channel_ = need(engine::create_channel(context_), "create_channel");
  fcntl(channel_fd(), F_SETFL, fcntl(channel_fd(), F_GETFL) | O_NONBLOCK);
  cq_ = need(engine::create_cq(context_, cq_entries, channel_, this), "create_cq");
  engine::SrqAttr attr{kSrqEntries, 2, 0};
  srq_ = need(engine::create_srq(pd_, attr, this), "create_srq");
  nic::AddressVector here;
  here.port = 1;
  here.has_grh = true;
  here.dgid = engine::port_facts().gids[0].gid;
  ah_ = need(engine::create_ah(pd_, here), "create_ah");
  buffers_ = new Region(pd_, kSrqEntries * kMessageBytes);
  for (std::uint32_t i = 0; i < kSrqEntries; ++i) free_.push_back(kSrqEntries - 1 - i);
  take_slot();
}

// A process takes its slot and starts its service thread with the first QP.
void Nic::take_slot() {
  engine::QpInit init;
  init.send_cq = init.recv_cq = cq_;
  init.cap = {1, 1, 1, 1, 0};
  engine::Qp* first = need(engine::create_qp(pd_, init), "create_qp");
  need(engine::destroy_qp(first), "destroy_qp");
}

Nic::~Nic() {
  need(engine::destroy_srq(srq_), "destroy_srq");
  delete buffers_;
  need(engine::destroy_cq(cq_), "destroy_cq");
  need(engine::destroy_channel(channel_), "destroy_channel");
  need(engine::destroy_ah(ah_), "destroy_ah");
  need(engine::dealloc_pd(pd_), "dealloc_pd");
  need(engine::close_device(context_), "close_device");
  engine::free_context(context_);
}

std::uint32_t Nic::fill_srq() {
  std::uint32_t count = 0;
  while (!free_.empty()) {
    const std::uint32_t buffer = free_.back();
    const ib::Sge sge = buffers_->sge(buffer * kMessageBytes, kMessageBytes);
    need(engine::post_srq_recv(srq_, {buffer, {&sge, 1}}), "post_srq_recv");
    free_.pop_back();
    ++posted_;
    ++count;
  }
  return count;
}

const std::byte* Nic::srq_buffer(std::uint64_t wr_id) const {
  if (wr_id >= kSrqEntries) fail("a receive completion of the SRQ with a wr_id never posted");
  return buffers_->at(wr_id * kMessageBytes);
}

void Nic::release_srq_buffer(std::uint64_t wr_id) {
  for (const std::uint32_t buffer : free_) {
    if (buffer == wr_id) fail("an SRQ receive completed twice");
  }
  free_.push_back(static_cast<std::uint32_t>(wr_id));
  --posted_;
}

void Nic::arm() { need(engine::req_notify(cq_, false), "req_notify"); }

void Nic::take_events() {
  while (engine::get_cq_event(channel_)) engine::ack_cq_events(cq_, 1);
}

}  // namespace vrb::death
