// The preload's one idea: a path below /sys/class/infiniband, /sys/class/infiniband_verbs or
// /dev/infiniband becomes the same path below $VERBENA_TREE; every other path stays as it is.
// Used inside other people's processes, also before their constructors and in signal handlers: no
// state, no heap, no lock. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace vrb::preload {

constexpr std::size_t kPathMax = 4096;

// The part of an absolute path that follows one of the three prefixes ("" or "/..."), and which
// one.
struct Place {
  const char* prefix = nullptr;  // nullptr: the path is none of ours
  const char* rest = nullptr;
};
Place find_place(const char* path);

// $VERBENA_TREE if it is an absolute path, or nullptr.
const char* tree();

// Puts root + prefix + rest into out (of kPathMax bytes); false if it does not fit.
bool move_path(const char* root, const Place& place, char* out);

// Takes the root off a path that lies below it, in place.
void strip_root(const char* root, char* path);

// The path that is really used, for a call that succeeded or failed with it. The buffer is on the
// stack of redirected calls alone, for a caller may have very little stack.
template <class Call>
__attribute__((noinline)) auto call_moved(const char* path, const char* root, const Place& place,
                                          Call call) {
  char moved[kPathMax];
  return call(move_path(root, place, moved) ? moved : path);
}

template <class Call>
auto with_path(const char* path, Call call) {
  const Place place = find_place(path);
  const char* root = place.prefix == nullptr ? nullptr : tree();
  return root == nullptr ? call(path) : call_moved(path, root, place, call);
}

}  // namespace vrb::preload
