// The opened device and its asynchronous events (ibv_open_device(3), ibv_get_async_event(3)).
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "engine/engine.h"
#include "engine/events.h"
#include "engine/refusals.h"

namespace vrb::engine {

const PortFacts& port_facts() {
  static const PortFacts* facts = new PortFacts(discover());
  return *facts;
}

ib::Result<Context*> open_device(void* handle) {
  auto* context = new Context(Engine::get(), handle);
  if (context->events.fd() < 0) {
    const int error = errno;
    delete context;
    return refused("ibv_open_device", ib::Errc::TooManyFiles, ib::CauseCode::SystemRefused, 290,
                   error);
  }
  return context;
}

// The object itself stays: objects that the program left behind still point to it.
ib::Result<void> close_device(Context* context) {
  if (!context->engine.forked()) context->events.close_fd();
  return {};
}

void free_context(Context* context) { delete context; }

int async_fd(const Context* context) { return context->events.fd(); }

ib::Result<AsyncEvent> get_async_event(Context* context) {
  AsyncEvent event;
  const bool taken = context->events.pop(event, [](const AsyncEvent& e) {
    if (e.token != nullptr) static_cast<Unacknowledged*>(e.token)->add();
  });
  if (!taken)
    return ib::refuse(static_cast<ib::Errc>(errno), ib::CauseCode::SystemRefused, 0, errno);
  return event;
}

void ack_async_event(const AsyncEvent& event) {
  if (event.token != nullptr) static_cast<Unacknowledged*>(event.token)->remove(1);
}

void raise_async(Context& context, ib::EventType type, void* element, Unacknowledged& count) {
  context.events.push({type, element, &count});
}

void raise_qp_event(Qp& qp, ib::EventType type) {
  raise_async(qp.pd.context, type, qp.init.handle, qp.async_events);
}

}  // namespace vrb::engine
