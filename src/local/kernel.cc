// SPDX-License-Identifier: Apache-2.0
#include "local/kernel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

#include <cerrno>
#include <cstring>

namespace vrb::local {
namespace {

// Newer than the headers that we are built with.
constexpr unsigned kMfdNoexecSeal = 8;
constexpr int kSoPeerPidfd = 77;
constexpr long kTmpfsMagic = 0x01021994;

int memfd(const char* name, unsigned flags) {
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

base::Unexpected<ib::Refusal> refused(long call, int error) {
  return ib::refuse(ib::Errc::NoMemory, ib::CauseCode::SystemRefused, call, error);
}

}  // namespace

KernelMask& kernel_mask() {
  static KernelMask mask;
  return mask;
}

ib::Result<Fd> make_file(const char* name, std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return refused(SYS_prlimit64, errno);
  if (limit.rlim_cur != RLIM_INFINITY) return refused(SYS_ftruncate, EFBIG);
  int fd = -1;
  if (kernel_mask().noexec_seal) {
    fd = memfd(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdNoexecSeal);
  }
  if (fd < 0) fd = memfd(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Fd file = Fd::adopt(fd);
  if (!file) return refused(SYS_memfd_create, errno);
  if (syscall(SYS_ftruncate, file.get(), bytes) != 0) return refused(SYS_ftruncate, errno);
  return file;
}

bool add_seals(int fd, unsigned seals) { return fcntl(fd, F_ADD_SEALS, seals) == 0; }

bool is_sealed_file(int fd, std::uint64_t bytes, bool read_only) {
  struct statfs fs {};
  struct stat st {};
  // Huge-page files can be sealed too, and raise SIGBUS when the pool is empty.
  if (fstatfs(fd, &fs) != 0 || fs.f_type != kTmpfsMagic) return false;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return false;
  const int want = F_SEAL_SHRINK | F_SEAL_GROW | (read_only ? F_SEAL_FUTURE_WRITE : 0);
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & want) == want && static_cast<std::uint64_t>(st.st_size) == bytes;
}

bool punch(int fd, std::uint64_t offset, std::uint64_t bytes) {
  return syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0;
}

void clear_data(int fd, std::byte* mapping, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const off_t data = lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;
    const std::uint64_t from = data < 0 ? offset : static_cast<std::uint64_t>(data);
    if (from >= end) return;
    const off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    const std::uint64_t to = hole < 0 ? end : std::min(end, static_cast<std::uint64_t>(hole));
    std::memset(mapping + from, 0, to - from);
    offset = to;
  }
}

ib::Result<Mapping> Mapping::of(int fd, std::uint64_t bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  // PROT_NONE first: under mlockall(MCL_FUTURE) any other mapping would fill the whole file (A11).
  // Not under valgrind, which looks at each byte that mprotect opens, for seconds a GiB.
  const int first = RUNNING_ON_VALGRIND != 0 ? protection : PROT_NONE;
  const long base = syscall(SYS_mmap, nullptr, bytes, first, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == -1) return refused(SYS_mmap, errno);
  Mapping mapping;
  mapping.base_ = reinterpret_cast<std::byte*>(base);
  mapping.bytes_ = bytes;
  mapping.epoch_ = fork_epoch();
  syscall(SYS_munlock, base, bytes);
  if (syscall(SYS_madvise, base, bytes, MADV_DONTFORK) != 0) return refused(SYS_madvise, errno);
  syscall(SYS_madvise, base, bytes, MADV_DONTDUMP);
  if (first != protection && syscall(SYS_mprotect, base, bytes, protection) != 0) {
    return refused(SYS_mprotect, errno);
  }
  // Nor shall its search for leaks read, and so fill, a sparse file in which no pointer lies.
  VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(base, bytes);
  VALGRIND_MAKE_MEM_NOACCESS(base, bytes);
  return mapping;
}

void Mapping::reset() {
  std::byte* base = std::exchange(base_, nullptr);
  if (base == nullptr || epoch_ != fork_epoch()) return;
  VALGRIND_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE(base, bytes_);
  syscall(SYS_munmap, base, bytes_);
}

PeerPid peer_pidfd(int socket, int pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (kernel_mask().peer_pidfd) {
    if (getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &fd, &size) == 0) {
      PeerPid peer{Fd::adopt(fd)};
      peer.gone = peer.fd && has_ended(peer.fd.get());
      return peer;
    }
    // A dead process's pid may be another's by now: never open it by number.
    if (errno == ESRCH || errno == EINVAL || errno == ENODATA) return {Fd(), true};
  }
  if (pid <= 0) return {};
  PeerPid peer{Fd::adopt(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))};
  peer.gone = peer.fd ? has_ended(peer.fd.get()) : errno == ESRCH;
  return peer;
}

bool has_ended(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return poll(&p, 1, 0) > 0;
}

}  // namespace vrb::local
