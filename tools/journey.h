// `verbena journey`: follows an RDMA WRITE step by step, between two real processes. The program
// behind it (examples/journey) uses nothing but the public verbs. Single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vrb::tools {

// Becomes that program, in the environment of `verbena run`; a Failure if it cannot.
[[noreturn]] int run_journey();

}  // namespace vrb::tools
