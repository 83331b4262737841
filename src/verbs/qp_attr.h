// QP and address attributes between verbs.h and the engine. Pure functions; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nic/qp_attr.h"
#include "verbs/abi.h"

namespace vrb::verbs {

nic::AddressVector to_address_vector(const ibv_ah_attr& from);
ibv_ah_attr from_address_vector(const nic::AddressVector& from);

nic::QpCap to_cap(const ibv_qp_cap& from);
ibv_qp_cap from_cap(const nic::QpCap& from);

// Reads just the fields that the mask names, for programs leave the others unset. Values that do
// not fit are made the largest that do, which is not allowed for any of them.
nic::QpAttr to_qp_attr(const ibv_qp_attr& from, std::uint32_t mask);
ibv_qp_attr from_qp_attr(const nic::QpAttr& from);

}  // namespace vrb::verbs
