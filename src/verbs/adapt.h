// From results to the conventions of verbs.h. A call is one of three kinds: it returns 0 or a
// positive errno value, a pointer or NULL with errno, 0 or -1 with errno. Each adapter takes the
// call's name, for the explanation, and a body that returns an ib::Result. No exception but that of
// a cancelled thread passes them. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <exception>
#include <utility>

#include "engine/api.h"

namespace vrb::verbs {

// A refusal that the skin finds itself; those of the engine are explained already.
template <class... A>
base::Unexpected<ib::Refusal> refused(const char* verb, ib::Errc errc, ib::CauseCode code,
                                      A... args) {
  return {engine::explain(verb, ib::Refusal{errc, ib::cause(code, args...)})};
}
inline base::Unexpected<ib::Refusal> not_built(const char* verb) {
  return refused(verb, ib::Errc::NotSupported, ib::CauseCode::NotBuilt);
}

template <class... P>
ib::Result<void> all_set(const char* verb, const P*... pointers) {
  if ((!pointers || ...)) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::NullArgument);
  }
  return {};
}

template <class F>
auto guarded(const char* verb, F&& body) -> decltype(body(verb)) {
  try {
    return body(verb);
  } catch (const std::exception&) {  // bad_alloc and its kin
    return refused(verb, ib::Errc::NoMemory, ib::CauseCode::OutOfMemory);
  }
}

inline int errno_of(const ib::Refusal& refusal) { return errno = static_cast<int>(refusal.errc); }

template <class F>
int int_ret(const char* verb, F&& body) {
  const ib::Result<void> result = guarded(verb, std::forward<F>(body));
  return result ? 0 : errno_of(result.error());
}

template <class F>
int minus_one_ret(const char* verb, F&& body) {
  return int_ret(verb, std::forward<F>(body)) == 0 ? 0 : -1;
}

template <class F>
auto ptr_ret(const char* verb, F&& body) {
  auto result = guarded(verb, std::forward<F>(body));
  if (result) return *result;
  errno_of(result.error());
  return decltype(+*result){nullptr};
}

}  // namespace vrb::verbs
