// `verbena devices`: the device as programs see it here, and what the local carrier may do on this
// host. Single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vrb::tools {

// JSON is the stable format.
std::string describe_devices(bool json);

// The slots whose control socket is in /proc/net/unix's text, sorted.
std::vector<unsigned> slots_in(const std::string& proc_net_unix);

}  // namespace vrb::tools
