// The device and its list: ibv_get_device_list(3), ibv_get_device_name(3), ibv_open_device(3).
// SPDX-License-Identifier: Apache-2.0
#include <endian.h>

#include <cstdlib>
#include <memory>

#include "verbs/adapt.h"
#include "verbs/objects.h"

namespace vrb::verbs {
namespace {

static_assert(ib::kDeviceIndex == 240, "it is part of the names below");
constinit VerbsDevice device{.device = {._ops = {},
                                        .node_type = IBV_NODE_CA,
                                        .transport_type = IBV_TRANSPORT_IB,
                                        .name = "verbena0",
                                        .dev_name = "uverbs240",
                                        .dev_path = "/sys/class/infiniband_verbs/uverbs240",
                                        .ibdev_path = "/sys/class/infiniband/verbena0"}};

}  // namespace

ibv_device& the_device() { return device.device; }

std::uint32_t next_handle() {
  static constinit std::atomic<std::uint32_t> last{0};
  return ++last;
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

ibv_device** ibv_get_device_list(int* num_devices) {
  // From calloc, since programs are known to free the array themselves.
  auto** list = static_cast<ibv_device**>(std::calloc(2, sizeof(void*)));
  if (list != nullptr) list[0] = &the_device();
  if (num_devices != nullptr) *num_devices = list != nullptr ? 1 : 0;
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* asked) {
  return asked != nullptr ? asked->name : nullptr;
}

int ibv_get_device_index(ibv_device* asked) {
  return asked == &the_device() ? ib::kDeviceIndex : -1;
}

__be64 ibv_get_device_guid(ibv_device* asked) {
  return asked == &the_device() ? htobe64(engine::port_facts().guid) : 0;
}

ibv_context* ibv_open_device(ibv_device* asked) {
  return ptr_ret("ibv_open_device", [&](const char* verb) -> ib::Result<ibv_context*> {
    if (asked != &the_device()) {
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::NullArgument);
    }
    auto context = std::make_unique<VerbsContext>();
    const auto opened = engine::open_device(&context->context);
    if (!opened) return base::Unexpected{opened.error()};
    context->engine = *opened;
    context->context.async_fd = engine::async_fd(*opened);
    return &context.release()->context;
  });
}

int ibv_close_device(ibv_context* context) {
  return minus_one_ret("ibv_close_device", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context); !ok) return ok;
    if (auto ok = engine::close_device(ours(context).engine); !ok) return ok;
    ContextRef::drop(ours(context));
    return {};
  });
}
