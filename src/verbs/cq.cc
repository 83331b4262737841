// Completion queues and channels: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3),
// ibv_create_comp_channel(3), ibv_get_cq_event(3).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "verbs/adapt.h"
#include "verbs/context_table.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

constexpr int kBatch = 16;

// RoCE has no LIDs and one P_Key: those fields are zero.
void convert(const nic::Completion& from, ibv_wc& to) {
  to.wr_id = from.wr_id;
  to.status = static_cast<ibv_wc_status>(from.status);
  to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to.vendor_err = from.vendor_err;
  to.byte_len = from.byte_len;
  to.imm_data = from.imm;
  to.qp_num = from.qpn;
  to.src_qp = from.src_qp;
  to.wc_flags = from.wc_flags;
  to.pkey_index = 0;
  to.slid = 0;
  to.sl = from.sl;
  to.dlid_path_bits = 0;
}

ib::Result<ibv_cq*> create_cq(const char* verb, ibv_context* context, int cqe,
                              ibv_comp_channel* channel, int vector) {
  if (auto ok = all_set(verb, context); !ok) return base::Unexpected{ok.error()};
  if (vector < 0 || vector >= context->num_comp_vectors || cqe <= 0) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::LimitExceeded, cqe <= 0 ? cqe : vector,
                   cqe <= 0 ? ib::kMaxCqe : context->num_comp_vectors - 1);
  }
  auto cq = std::make_unique<VerbsCq>(context);
  const auto made = engine::create_cq(ours(context).engine, static_cast<std::uint32_t>(cqe),
                                      channel != nullptr ? ours(channel).impl : nullptr,
                                      static_cast<ibv_cq*>(cq.get()));
  if (!made) return base::Unexpected{made.error()};
  cq->impl = *made;
  cq->channel = channel;
  cq->cqe = static_cast<int>(engine::cq_capacity(*made));
  return cq.release();
}

}  // namespace

int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  // Not constructed: an empty poll must not pay for filling it.
  alignas(nic::Completion) std::byte storage[kBatch * sizeof(nic::Completion)];
  auto* const batch = reinterpret_cast<nic::Completion*>(storage);
  int done = 0;
  while (done < entries) {
    const int room = std::min(kBatch, entries - done);
    const int got = engine::poll_cq(ours(cq).impl, {batch, static_cast<std::size_t>(room)});
    if (got < 0) return done > 0 ? done : got;
    for (int i = 0; i < got; ++i) convert(batch[i], wc[done + i]);
    done += got;
    if (got < room) break;
  }
  return done;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return int_ret("ibv_req_notify_cq", [&](const char*) {
    return engine::req_notify(ours(cq).impl, solicited_only != 0);
  });
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return ptr_ret("ibv_create_comp_channel", [&](const char* verb) -> ib::Result<ibv_comp_channel*> {
    if (auto ok = all_set(verb, context); !ok) return base::Unexpected{ok.error()};
    auto channel = std::make_unique<VerbsChannel>(context);
    const auto made = engine::create_channel(ours(context).engine);
    if (!made) return base::Unexpected{made.error()};
    channel->impl = *made;
    channel->fd = engine::channel_fd(*made);
    return channel.release();
  });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return int_ret("ibv_destroy_comp_channel", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, channel); !ok) return ok;
    if (auto ok = engine::destroy_channel(ours(channel).impl); !ok) return ok;
    delete &ours(channel);
    return {};
  });
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
  ibv_cq* cq = ptr_ret("ibv_create_cq", [&](const char* verb) {
    return verbs::create_cq(verb, context, cqe, channel, comp_vector);
  });
  if (cq != nullptr) cq->cq_context = cq_context;
  return cq;
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  return int_ret("ibv_resize_cq", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, cq); !ok) return ok;
    if (cqe <= 0) {
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::LimitExceeded, cqe, ib::kMaxCqe);
    }
    if (auto ok = engine::resize_cq(ours(cq).impl, static_cast<std::uint32_t>(cqe)); !ok) return ok;
    cq->cqe = static_cast<int>(engine::cq_capacity(ours(cq).impl));
    return {};
  });
}

int ibv_destroy_cq(ibv_cq* cq) {
  return int_ret("ibv_destroy_cq", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, cq); !ok) return ok;
    if (auto ok = engine::destroy_cq(ours(cq).impl); !ok) return ok;
    delete &ours(cq);
    return {};
  });
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return minus_one_ret("ibv_get_cq_event", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, channel, cq, cq_context); !ok) return ok;
    const auto handle = engine::get_cq_event(ours(channel).impl);
    if (!handle) return base::Unexpected{handle.error()};
    *cq = static_cast<ibv_cq*>(*handle);
    *cq_context = (*cq)->cq_context;
    return {};
  });
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) {
  if (cq != nullptr) engine::ack_cq_events(ours(cq).impl, nevents);
}
