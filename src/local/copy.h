// Copies whose order of stores is known (A32): ascending, each store naturally aligned, so that a
// program that polls the last byte of a message finds all of it. memcpy promises no order, and
// libc's has none. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace vrb::local {

// The ranges do not overlap, or `to` lies below `from`. Naturally aligned 1, 2, 4 and 8 bytes take
// one store.
void copy_ascending(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace vrb::local
