// What ibv_poll_cq returns, in our own types (ibv_wc). Plain value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ib/types.h"

namespace vrb::nic {

struct Completion {
  std::uint64_t wr_id = 0;
  ib::WcStatus status = ib::WcStatus::Success;
  ib::WcOpcode opcode = ib::WcOpcode::Send;
  std::uint32_t vendor_err = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;  // network order
  std::uint32_t qpn = 0;
  std::uint32_t src_qp = 0;
  std::uint8_t wc_flags = 0;
  std::uint8_t sl = 0;
};

}  // namespace vrb::nic
