// SPDX-License-Identifier: Apache-2.0
#include "preload/redirect.h"

#include <stdlib.h>
#include <string.h>

namespace vrb::preload {
namespace {

// Skips slashes and "." components.
const char* skip(const char* at) {
  const auto skippable = [&] {
    return at[0] == '/' || (at[0] == '.' && (at[1] == '/' || at[1] == '\0'));
  };
  while (skippable()) ++at;
  return at;
}

// Behind the component if the path goes on with it, or nullptr.
const char* component(const char* at, const char* name) {
  at = skip(at);
  const size_t length = strlen(name);
  if (strncmp(at, name, length) != 0) return nullptr;
  at += length;
  return *at == '/' || *at == '\0' ? at : nullptr;
}

// "infiniband/../net" is somewhere else.
bool climbs_out(const char* rest) {
  int depth = 0;
  for (const char* at = skip(rest); *at != '\0'; at = skip(at)) {
    const char* end = strchr(at, '/');
    const size_t length = end == nullptr ? strlen(at) : static_cast<size_t>(end - at);
    depth += length == 2 && at[0] == '.' && at[1] == '.' ? -1 : 1;
    if (depth < 0) return true;
    at += length;
  }
  return false;
}

Place place(const char* prefix, const char* rest) {
  return rest == nullptr || climbs_out(rest) ? Place{} : Place{prefix, rest};
}

}  // namespace

Place find_place(const char* path) {
  if (path == nullptr || path[0] != '/') return {};
  if (const char* dev = component(path, "dev"); dev != nullptr) {
    return place("/dev/infiniband", component(dev, "infiniband"));
  }
  const char* sys = component(path, "sys");
  if (sys == nullptr) return {};
  const char* cls = component(sys, "class");
  if (cls == nullptr) return {};
  if (const char* rest = component(cls, "infiniband"); rest != nullptr) {
    return place("/sys/class/infiniband", rest);
  }
  return place("/sys/class/infiniband_verbs", component(cls, "infiniband_verbs"));
}

const char* tree() {
  const char* root = secure_getenv("VERBENA_TREE");
  return root != nullptr && root[0] == '/' ? root : nullptr;
}

bool move_path(const char* root, const Place& place, char* out) {
  size_t used = 0;
  const char* parts[] = {root, place.prefix, place.rest};
  for (const char* part : parts) {
    const size_t length = strlen(part);
    if (length >= kPathMax - used) return false;
    memcpy(out + used, part, length + 1);
    used += length;
  }
  return true;
}

void strip_root(const char* root, char* path) {
  const size_t length = strlen(root);
  if (strncmp(path, root, length) != 0 || path[length] != '/') return;
  memmove(path, path + length, strlen(path + length) + 1);
}

}  // namespace vrb::preload
