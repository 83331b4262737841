// "Not supported" for every entry of the two tables that programs call through, each in its own
// convention: ints are the positive errno value, pointers NULL with errno, poll_cq is negative (a
// positive number would be read as that many completions). Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verbs/abi.h"

namespace vrb::verbs {

void fill_unsupported(verbs_context& context);

}  // namespace vrb::verbs
