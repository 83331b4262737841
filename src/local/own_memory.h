// Our own program's memory, touched so that a page that is not there is an answer and not a signal:
// copies by system call, because between a look and a copy the program may unmap. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vrb::local {

// A place in one of our files that is mapped at `bytes`; the copy goes through the file where a
// process may not use process_vm_* even on itself. Without a file (fd < 0) it is then made
// directly.
struct Staging {
  std::byte* bytes;
  int fd = -1;
  std::uint64_t offset = 0;
};

// False: not all of the range is mapped with the access needed; what was copied before that stays
// copied.
bool read_own(const Staging& to, std::uint64_t from, std::uint64_t length);
// The last 8 bytes are written by a call of their own, after all others (A32).
bool write_own(std::uint64_t to, const Staging& from, std::uint64_t length);

}  // namespace vrb::local
