// Completion queues and completion channels (ibv_create_cq(3), ibv_resize_cq(3),
// ibv_get_cq_event(3); IBTA 11.2.8, 11.4.2).
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cerrno>

#include "engine/engine.h"
#include "engine/events.h"
#include "engine/refusals.h"

namespace vrb::engine {
ib::Result<local::Piece> make_ring(Engine& engine, std::uint32_t capacity, queue::SharedCq& ring) {
  const auto memory = engine.memory();
  if (!memory) return base::Unexpected{memory.error()};
  const std::uint32_t entries = std::bit_ceil(capacity);
  const auto piece = (*memory)->alloc_shared(queue::SharedCq::bytes(entries));
  if (!piece) return base::Unexpected{piece.error()};
  std::byte* at = (*memory)->shared_at(piece->offset);
  ring = queue::SharedCq(reinterpret_cast<queue::SharedCqHeader*>(at),
                         reinterpret_cast<queue::SharedCqe*>(at + sizeof(queue::SharedCqHeader)),
                         entries);
  ring.initialise();
  return piece;
}

ib::Result<Channel*> create_channel(Context* context) {
  if (context->engine.forked()) return refused_forked("ibv_create_comp_channel");
  auto* channel = new Channel(*context);
  if (channel->events.fd() < 0) {
    const int error = errno;
    delete channel;
    return refused("ibv_create_comp_channel", ib::Errc::TooManyFiles, ib::CauseCode::SystemRefused,
                   290, error);
  }
  return channel;
}

ib::Result<void> destroy_channel(Channel* channel) {
  if (channel->context.engine.forked()) return refused_forked("ibv_destroy_comp_channel");
  if (const std::uint32_t uses = channel->uses.load(); uses != 0) {
    return refused("ibv_destroy_comp_channel", ib::Errc::Busy, ib::CauseCode::ObjectBusy, uses);
  }
  delete channel;
  return {};
}

int channel_fd(const Channel* channel) { return channel->events.fd(); }

ib::Result<void*> get_cq_event(Channel* channel) {
  Cq* cq = nullptr;
  if (!channel->events.pop(cq, [](Cq* c) { c->completion_events.add(); })) {
    return ib::refuse(static_cast<ib::Errc>(errno), ib::CauseCode::SystemRefused, 0, errno);
  }
  return cq->handle;
}

ib::Result<Cq*> create_cq(Context* context, std::uint32_t cqe, Channel* channel, void* handle) {
  Engine& engine = context->engine;
  if (engine.forked()) return refused_forked("ibv_create_cq");
  if (cqe == 0 || cqe > ib::kMaxCqe) {
    return refused("ibv_create_cq", ib::Errc::Invalid, ib::CauseCode::LimitExceeded, cqe,
                   ib::kMaxCqe);
  }
  queue::SharedCq ring;
  const auto piece = make_ring(engine, cqe, ring);
  if (!piece) return refused("ibv_create_cq", piece.error());
  auto cq = std::make_unique<Cq>(*context, channel, handle);
  if (!engine.cq_numbers.take(cq->index)) {
    engine.memory_if_made()->free_shared(*piece);
    return refused("ibv_create_cq", ib::Errc::NoMemory, ib::CauseCode::LimitExceeded,
                   ib::kMaxCq + 1, ib::kMaxCq);
  }
  cq->capacity = cqe;
  cq->piece = *piece;
  {
    const base::SpinGuard guard(cq->lock);
    cq->shared = queue::SharedCqConsumer(ring);
  }
  if (channel != nullptr) ++channel->uses;
  const std::lock_guard guard(engine.registry_lock);
  engine.cqs[cq->index] = cq.get();
  return cq.release();
}

std::uint32_t cq_capacity(const Cq* cq) { return cq->capacity; }

ib::Result<void> destroy_cq(Cq* cq) {
  Engine& engine = cq->context.engine;
  if (engine.forked()) return refused_forked("ibv_destroy_cq");
  if (const std::uint32_t uses = cq->uses.load(); uses != 0) {
    return refused("ibv_destroy_cq", ib::Errc::Busy, ib::CauseCode::ObjectBusy, uses);
  }
  {
    const std::lock_guard guard(engine.registry_lock);
    engine.cqs.erase(cq->index);
  }
  cq->context.events.purge([cq](const AsyncEvent& e) { return e.token == &cq->async_events; });
  if (cq->channel != nullptr) cq->channel->events.purge([cq](Cq* other) { return other == cq; });
  cq->completion_events.wait_for_none();
  cq->async_events.wait_for_none();
  if (cq->channel != nullptr) --cq->channel->uses;
  local::NicMemory& memory = *engine.memory_if_made();
  memory.grace();
  memory.free_shared(cq->piece);
  engine.cq_numbers.release(cq->index);
  delete cq;
  return {};
}

void ack_cq_events(Cq* cq, unsigned events) { cq->completion_events.remove(events); }

ib::Result<void> req_notify(Cq* cq, bool solicited_only) {
  if (cq->context.engine.forked()) return refused_forked("ibv_req_notify_cq");
  const base::SpinGuard guard(cq->lock);
  queue::SharedCq ring = cq->shared.ring();
  ring.arm(solicited_only ? queue::Armed::Solicited : queue::Armed::Any);
  return {};
}

void raise_cq_event(Cq& cq) {
  if (cq.channel != nullptr) cq.channel->events.push(&cq);
}

ib::Result<void> resize_cq(Cq* cq, std::uint32_t cqe) {
  Engine& engine = cq->context.engine;
  if (engine.forked()) return refused_forked("ibv_resize_cq");
  if (cqe == 0 || cqe > ib::kMaxCqe) {
    return refused("ibv_resize_cq", ib::Errc::Invalid, ib::CauseCode::LimitExceeded, cqe,
                   ib::kMaxCqe);
  }
  {
    const base::SpinGuard guard(cq->lock);
    drain_shared(engine, *cq);
    if (cq->own.size() > cqe) {
      return refused("ibv_resize_cq", ib::Errc::Invalid, ib::CauseCode::CqOverrun, cq->own.size(),
                     cqe);
    }
    if (std::bit_ceil(cqe) <= cq->shared.ring().entries()) {  // the ring is large enough
      cq->capacity = cqe;
      return {};
    }
  }
  return replace_ring(engine, *cq, cqe);
}

}  // namespace vrb::engine
