// SPDX-License-Identifier: Apache-2.0
#include "local/nic_memory.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vrb::local {
namespace {

void write_headers(Tables& tables, Shared& shared, std::uint64_t incarnation) {
  TablesHeader& header = tables.header;
  header.magic = kMagic;
  header.layout_version = kLayoutVersion;
  header.uid = geteuid();
  header.incarnation = incarnation;
  header.tables_bytes = kTablesBytes;
  header.shared_bytes = kSharedBytes;
  for (auto& slot : header.slot) slot.store(kNoSlot, std::memory_order_relaxed);
  shared.magic = kMagic;
  shared.layout_version = kLayoutVersion;
  shared.incarnation = incarnation;
}

}  // namespace

ib::Result<std::unique_ptr<NicMemory>> NicMemory::create(std::uint64_t incarnation) {
  std::unique_ptr<NicMemory> memory(new NicMemory);
  auto tables = make_file("verbena-tables", kTablesBytes);
  if (!tables) return base::Unexpected{tables.error()};
  auto shared = make_file("verbena-shared", kSharedBytes);
  if (!shared) return base::Unexpected{shared.error()};
  auto tables_map = Mapping::of(tables->get(), kTablesBytes, true);
  if (!tables_map) return base::Unexpected{tables_map.error()};
  auto shared_map = Mapping::of(shared->get(), kSharedBytes, true);
  if (!shared_map) return base::Unexpected{shared_map.error()};
  constexpr unsigned kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  // FUTURE_WRITE leaves the mapping above writable and forbids any other (A43).
  if (!add_seals(tables->get(), kSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) ||
      !add_seals(shared->get(), kSize | F_SEAL_SEAL)) {
    return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::SystemRefused, SYS_fcntl, errno);
  }
  memory->tables_fd_ = std::move(*tables);
  memory->shared_fd_ = std::move(*shared);
  memory->tables_map_ = std::move(*tables_map);
  memory->shared_map_ = std::move(*shared_map);
  memory->tables_ = reinterpret_cast<Tables*>(memory->tables_map_.get());
  memory->shared_ = reinterpret_cast<Shared*>(memory->shared_map_.get());
  write_headers(*memory->tables_, *memory->shared_, incarnation);
  return memory;
}

ib::Result<Piece> NicMemory::alloc_table(std::uint64_t bytes) {
  std::uint64_t at;
  {
    const base::SpinGuard guard(lock_);
    at = table_arena_.alloc(bytes);
  }
  if (at == ~0ULL) return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::OutOfMemory);
  const Piece piece{kTablesArena + at, bytes};
  // A file sealed against writing cannot be punched, not even by its owner.
  clear_data(tables_fd_.get(), tables_map_.get(), piece.offset, bytes);
  return piece;
}

ib::Result<Piece> NicMemory::alloc_shared(std::uint64_t bytes) {
  const base::SpinGuard guard(lock_);
  const std::uint64_t at = shared_arena_.alloc(bytes);
  if (at == ~0ULL) return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::OutOfMemory);
  return Piece{kSharedArena + at, bytes};
}

void NicMemory::give_back(const Held& held) {
  const auto [offset, bytes] = held.piece;
  if (held.table) {
    table_arena_.free(offset - kTablesArena, bytes);
    return;
  }
  const std::uint64_t pages = (bytes + 4095) & ~4095ULL;
  if (!punch(shared_fd_.get(), offset, pages)) std::memset(shared_at(offset), 0, bytes);
  shared_arena_.free(offset - kSharedArena, bytes);
}

void NicMemory::free_table(Piece piece) {
  quarantine_over();
  const base::SpinGuard guard(lock_);
  if (stuck_.empty()) return give_back({true, piece});
  held_.push_back({true, piece});
}

void NicMemory::free_shared(Piece piece) {
  quarantine_over();
  const base::SpinGuard guard(lock_);
  if (stuck_.empty()) return give_back({false, piece});
  held_.push_back({false, piece});
}

void NicMemory::abandon() {
  abandon_fds();
  tables_ = nullptr;
  shared_ = nullptr;
}

}  // namespace vrb::local
