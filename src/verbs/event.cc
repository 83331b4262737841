// Asynchronous events: ibv_get_async_event(3), ibv_ack_async_event(3).
// SPDX-License-Identifier: Apache-2.0
#include "verbs/adapt.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

// Where the token of an event is kept: the object that it is about. NULL for events of the port and
// the device, which need no acknowledgement.
std::atomic<void*>* token_of(const ibv_async_event& event) {
  switch (static_cast<ib::EventType>(raw(event.event_type))) {
    case ib::EventType::CqErr:
      return &ours(event.element.cq).async_token;
    case ib::EventType::SrqErr:
    case ib::EventType::SrqLimitReached:
      return &ours(event.element.srq).async_token;
    case ib::EventType::QpFatal:
    case ib::EventType::QpReqErr:
    case ib::EventType::QpAccessErr:
    case ib::EventType::CommEst:
    case ib::EventType::SqDrained:
    case ib::EventType::PathMig:
    case ib::EventType::PathMigErr:
    case ib::EventType::QpLastWqeReached:
      return &ours(event.element.qp).async_token;
    default:
      return nullptr;
  }
}

void set_element(ib::EventType type, void* element, ibv_async_event& to) {
  to = {};
  to.event_type = static_cast<ibv_event_type>(type);
  if (type == ib::EventType::CqErr) {
    to.element.cq = static_cast<ibv_cq*>(element);
  } else if (type == ib::EventType::SrqErr || type == ib::EventType::SrqLimitReached) {
    to.element.srq = static_cast<ibv_srq*>(element);
  } else if (element != nullptr) {
    to.element.qp = static_cast<ibv_qp*>(element);
  } else {
    to.element.port_num = 1;
  }
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return minus_one_ret("ibv_get_async_event", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, event); !ok) return ok;
    const auto got = engine::get_async_event(ours(context).engine);
    if (!got) return base::Unexpected{got.error()};
    set_element(got->type, got->element, *event);
    if (auto* token = token_of(*event)) *token = got->token;
    return {};
  });
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (event == nullptr) return;
  auto* token = token_of(*event);
  if (token == nullptr) return;
  engine::ack_async_event({.type = static_cast<ib::EventType>(raw(event->event_type)),
                           .element = event->element.qp,
                           .token = *token});
}
