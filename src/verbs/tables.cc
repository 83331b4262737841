// The GID and P_Key tables of the port: ibv_query_gid(3), ibv_query_gid_ex(3),
// ibv_query_gid_table(3), ibv_query_pkey(3), ibv_get_pkey_index(3).
// SPDX-License-Identifier: Apache-2.0
#include <endian.h>

#include <algorithm>

#include "verbs/adapt.h"
#include "verbs/private_node.h"

namespace vrb::verbs {
namespace {

ib::Result<void> check_gid_index(const char* verb, std::uint32_t port, std::uint32_t index) {
  if (port != 1) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, port);
  if (index >= ib::kGidTableLength) {
    return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadGidIndex, index, ib::kGidTableLength);
  }
  return {};
}

bool empty(std::uint32_t index) { return engine::is_zero(engine::port_facts().gids[index].gid); }

// Writes `size` bytes at `to`: the entry of a caller whose struct may differ from ours in length.
void write_entry(void* to, std::size_t size, std::uint32_t index) {
  const engine::GidEntry& known = engine::port_facts().gids[index];
  ibv_gid_entry entry{};
  std::copy(known.gid.begin(), known.gid.end(), entry.gid.raw);
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = known.ifindex;
  std::memset(to, 0, size);
  std::memcpy(to, &entry, std::min(size, sizeof entry));
}

}  // namespace

int query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  return minus_one_ret("ibv_query_gid_type", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, type); !ok) return ok;
    if (auto ok = check_gid_index(verb, port, index); !ok) return ok;
    *type = kSysfsRoceV2;
    return {};
  });
}

}  // namespace vrb::verbs

using namespace vrb;
using namespace vrb::verbs;

// An empty entry is a zero GID, not an error: perftest asks for each index.
int ibv_query_gid(ibv_context* context, uint8_t port, int index, union ibv_gid* gid) {
  return minus_one_ret("ibv_query_gid", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, gid); !ok) return ok;
    const auto at = static_cast<std::uint32_t>(index);
    if (auto ok = check_gid_index(verb, port, at); !ok) return ok;
    const ib::Gid& found = engine::port_facts().gids[at].gid;
    std::copy(found.begin(), found.end(), gid->raw);
    return {};
  });
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                      uint32_t flags, size_t entry_size) {
  return int_ret("ibv_query_gid_ex", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, entry); !ok) return ok;
    if (flags != 0) return not_built(verb);
    if (auto ok = check_gid_index(verb, port, index); !ok) return ok;
    if (empty(index)) {  // an answer, not a mistake of the caller's: nothing to explain
      return ib::refuse(ib::Errc::NoData, ib::CauseCode::BadGidIndex, index, ib::kGidTableLength);
    }
    write_entry(entry, entry_size, index);
    return {};
  });
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max_entries,
                             uint32_t flags, size_t entry_size) {
  ssize_t count = 0;
  const int error = int_ret("ibv_query_gid_table", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context); !ok) return ok;
    if (flags != 0) return not_built(verb);
    auto* at = reinterpret_cast<char*>(entries);
    for (std::uint32_t index = 0; index < ib::kGidTableLength; ++index) {
      if (empty(index)) continue;
      if (static_cast<std::size_t>(count) == max_entries) {
        return refused(verb, ib::Errc::Invalid, ib::CauseCode::LimitExceeded, count + 1,
                       max_entries);
      }
      write_entry(at + static_cast<std::size_t>(count++) * entry_size, entry_size, index);
    }
    return {};
  });
  return error == 0 ? count : -error;
}

int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) {
  return minus_one_ret("ibv_query_pkey", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context, pkey); !ok) return ok;
    if (port != 1) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, port);
    if (index != 0) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPkeyIndex, index);
    *pkey = htobe16(ib::kDefaultPkey);
    return {};
  });
}

int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  return minus_one_ret("ibv_get_pkey_index", [&](const char* verb) -> ib::Result<void> {
    if (auto ok = all_set(verb, context); !ok) return ok;
    if (port != 1) return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPort, port);
    if (be16toh(pkey) != ib::kDefaultPkey) {
      return refused(verb, ib::Errc::Invalid, ib::CauseCode::BadPkeyIndex, 1);
    }
    return {};  // the index is 0
  });
}
