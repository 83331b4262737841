// The QP state machine's table: which transitions exist for a transport, which attributes each
// needs and takes (IBTA 10.3.1, 11.2.5.2; ibv_modify_qp(3)). Pure functions; any thread.
//
//   RESET -> INIT -> RTR -> RTS <-> SQD      any -> ERR, any -> RESET
//                          RTS -> SQE (by the NIC, UC and UD) -> RTS
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ib/cause.h"
#include "nic/qp_attr.h"

namespace vrb::nic {

// May a QP of `type` in `from` go to `to` with attributes `mask` (kMaskState and kMaskCurState
// included or not)?
ib::Result<void> check_transition(ib::QpType type, ib::QpState from, ib::QpState to,
                                  std::uint32_t mask);

// Are the values of the attributes named by `mask` allowed (port, P_Key index, path MTU, timers,
// counts, GID index, access flags)? Independent of the state.
ib::Result<void> check_values(const QpAttr& attr, std::uint32_t mask);

// Copies the attributes named by `mask` (not the state) from `from` into `into`.
void assign(QpAttr& into, const QpAttr& from, std::uint32_t mask);

// IBTA table 45: the RNR NAK timer field in nanoseconds.
std::uint64_t rnr_timer_ns(std::uint8_t field);
// The local ACK timeout: 4.096 us * 2^timeout; 0 = never.
std::uint64_t ack_timeout_ns(std::uint8_t timeout);

}  // namespace vrb::nic
