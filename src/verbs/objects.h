// The objects that programs hold: each is the struct of verbs.h with the engine's object behind it.
// Programs read the fields in front; the rest is ours. Objects live from create to destroy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "engine/api.h"
#include "verbs/abi.h"

namespace vrb::verbs {

// Providers (libmlx5, libefa) look at the pointer behind struct ibv_device to find out whether a
// device is theirs: zero says no. They may look a little further.
struct VerbsDevice {
  ibv_device device;
  const void* provider_ops = nullptr;
  const void* reserved[15] = {};
};
static_assert(offsetof(VerbsDevice, provider_ops) == sizeof(ibv_device));

ibv_device& the_device();

// An opened device. The memory stays until the last object made from it has gone, for programs
// that close the device too early go on to read `context` of their objects.
struct VerbsContext final : verbs_context {
  VerbsContext();
  ~VerbsContext() {
    if (engine != nullptr) engine::free_context(engine);
  }
  VerbsContext(const VerbsContext&) = delete;
  VerbsContext& operator=(const VerbsContext&) = delete;
  engine::Context* engine = nullptr;
  std::atomic<int> holders{1};
};

inline VerbsContext& ours(ibv_context* context) {
  return static_cast<VerbsContext&>(*verbs_get_ctx(context));
}

// Keeps a context's memory.
class ContextRef {
 public:
  explicit ContextRef(ibv_context* context) : context_(ours(context)) { ++context_.holders; }
  ~ContextRef() { drop(context_); }
  ContextRef(const ContextRef&) = delete;
  ContextRef& operator=(const ContextRef&) = delete;
  static void drop(VerbsContext& context) {
    if (--context.holders == 0) delete &context;
  }

 private:
  VerbsContext& context_;
};

// What verbs.h calls an object's handle: a number that is unique in the process.
std::uint32_t next_handle();

template <class Base, class Impl>
struct Object : Base {
  explicit Object(ibv_context* from) : Base{}, keep(from) {
    this->context = from;
    if constexpr (requires { this->handle; }) this->handle = next_handle();
  }
  ContextRef keep;
  Impl* impl = nullptr;
};

struct VerbsPd final : Object<ibv_pd, engine::Pd> {
  using Object::Object;
};
struct VerbsMr final : Object<ibv_mr, engine::Mr> {
  using Object::Object;
};
struct VerbsAh final : Object<ibv_ah, engine::Ah> {
  using Object::Object;
};
struct VerbsChannel final : Object<ibv_comp_channel, engine::Channel> {
  using Object::Object;
};
// Those that have asynchronous events keep the token that acknowledges them.
struct VerbsCq final : Object<ibv_cq, engine::Cq> {
  using Object::Object;
  std::atomic<void*> async_token{nullptr};
};
struct VerbsSrq final : Object<ibv_srq, engine::Srq> {
  using Object::Object;
  std::atomic<void*> async_token{nullptr};
};
struct VerbsQp final : Object<ibv_qp, engine::Qp> {
  using Object::Object;
  bool sq_sig_all = false;
  std::atomic<void*> async_token{nullptr};
};

inline VerbsPd& ours(ibv_pd* pd) { return static_cast<VerbsPd&>(*pd); }
inline VerbsMr& ours(ibv_mr* mr) { return static_cast<VerbsMr&>(*mr); }
inline VerbsAh& ours(ibv_ah* ah) { return static_cast<VerbsAh&>(*ah); }
inline VerbsChannel& ours(ibv_comp_channel* channel) {
  return static_cast<VerbsChannel&>(*channel);
}
inline VerbsCq& ours(ibv_cq* cq) { return static_cast<VerbsCq&>(*cq); }
inline VerbsSrq& ours(ibv_srq* srq) { return static_cast<VerbsSrq&>(*srq); }
inline VerbsQp& ours(ibv_qp* qp) { return static_cast<VerbsQp&>(*qp); }

}  // namespace vrb::verbs
