// Names of enumerators, the texts that programs and their users know: ibv_node_type_str(3),
// ibv_port_state_str(3), ibv_event_type_str(3), ibv_wc_status_str.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "verbs/abi.h"

namespace vrb::verbs {
namespace {

constexpr const char* kUnknown = "unknown";

constexpr const char* kNodeTypes[] = {
    kUnknown,
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
};

constexpr const char* kPortStates[] = {
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};

constexpr const char* kEvents[] = {
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};

constexpr const char* kStatuses[] = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

template <class E, std::size_t N>
const char* name(const char* const (&names)[N], const E& value) {
  const std::uint32_t i = raw(value);
  return i < N ? names[i] : kUnknown;
}

}  // namespace
}  // namespace vrb::verbs

using namespace vrb::verbs;

const char* ibv_node_type_str(ibv_node_type type) { return name(kNodeTypes, type); }
const char* ibv_port_state_str(ibv_port_state state) { return name(kPortStates, state); }
const char* ibv_event_type_str(ibv_event_type event) { return name(kEvents, event); }
const char* ibv_wc_status_str(ibv_wc_status status) { return name(kStatuses, status); }
