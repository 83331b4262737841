// Short ways to refuse a verb: explained once, at the place where it is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/api.h"

namespace vrb::engine {

template <class... A>
base::Unexpected<ib::Refusal> refused(const char* verb, ib::Errc errc, ib::CauseCode code,
                                      A... args) {
  return base::Unexpected<ib::Refusal>{explain(verb, ib::Refusal{errc, ib::cause(code, args...)})};
}
inline base::Unexpected<ib::Refusal> refused(const char* verb, const ib::Refusal& refusal) {
  return base::Unexpected<ib::Refusal>{explain(verb, refusal)};
}
inline base::Unexpected<ib::Refusal> refused_forked(const char* verb) {
  return refused(verb, ib::Errc::NoDevice, ib::CauseCode::Forked);
}

}  // namespace vrb::engine
