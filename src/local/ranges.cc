// What is mapped in our own address space: the kernel is asked each time, nothing is remembered
// (A7).
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "local/kernel.h"
#include "local/transfer.h"

namespace vrb::local {
namespace {

constexpr std::uint64_t kPage = 4096;

// struct procmap_query of Linux 6.11, which the build's headers do not know.
struct ProcmapQuery {
  std::uint64_t size, flags, address;
  std::uint64_t start, end, vma_flags, page_size, offset, inode;
  std::uint32_t dev_major, dev_minor, name_size, build_id_size;
  std::uint64_t name, build_id;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t kReadable = 1;
constexpr std::uint64_t kWritable = 2;

struct Area {
  std::uint64_t start = 0, end = 0;
  bool readable = false, writable = false;
};

enum class Answer { Yes, No, Unknown };

Answer ask_kernel(int maps, std::uint64_t at, std::uint64_t end, bool writable) {
  const std::uint64_t need = kReadable | (writable ? kWritable : 0);
  while (at < end) {
    ProcmapQuery query{};
    query.size = sizeof query;
    query.address = at;
    if (ioctl(maps, kProcmapQuery, &query) != 0) {
      return errno == ENOENT ? Answer::No : Answer::Unknown;
    }
    if ((query.vma_flags & need) != need || query.end <= at) return Answer::No;
    at = query.end;
  }
  return Answer::Yes;
}

// Reads /proc/self/maps line by line with its own small buffer: no allocation, no stdio.
class MapsReader {
 public:
  explicit MapsReader(int fd) : fd_(fd) {}
  bool next(Area& area) {
    for (;;) {
      char* newline = static_cast<char*>(std::memchr(buffer_ + begin_, '\n', end_ - begin_));
      if (newline != nullptr) {
        *newline = '\0';
        const char* line = buffer_ + begin_;
        begin_ = static_cast<std::size_t>(newline + 1 - buffer_);
        char access[5] = {};
        if (std::sscanf(line, "%lx-%lx %4s", &area.start, &area.end, access) != 3) return false;
        area.readable = access[0] == 'r';
        area.writable = access[1] == 'w';
        return true;
      }
      if (!fill()) return false;
    }
  }

 private:
  bool fill() {
    std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ == sizeof buffer_) return false;
    const ssize_t n = read(fd_, buffer_ + end_, sizeof buffer_ - end_);
    if (n <= 0) return false;
    end_ += static_cast<std::size_t>(n);
    return true;
  }

  int fd_;
  std::size_t begin_ = 0, end_ = 0;
  char buffer_[8192];  // a line has at most a path of 4096
};

bool read_maps(int maps, std::uint64_t at, std::uint64_t end, bool writable) {
  MapsReader reader(maps);
  for (Area area; at < end && reader.next(area);) {
    if (area.end <= at) continue;
    if (area.start > at || !area.readable || (writable && !area.writable)) return false;
    at = area.end;
  }
  return at >= end;
}

}  // namespace

bool range_mapped(std::uint64_t va, std::uint64_t length, bool writable) {
  if (length == 0) return true;
  const std::uint64_t end = va + length;
  if (end < va) return false;
  const Fd maps = Fd::adopt(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (!maps) return mapped(va, length);
  if (kernel_mask().procmap_query) {
    const Answer answer = ask_kernel(maps.get(), va, end, writable);
    if (answer != Answer::Unknown) return answer == Answer::Yes;
  }
  return read_maps(maps.get(), va, end, writable);
}

bool mapped(std::uint64_t va, std::uint64_t length) {
  constexpr unsigned long kPages = 64;
  if (length == 0) return true;
  const std::uint64_t end = va + length;
  if (end < va) return false;
  char sink[kPages];
  iovec pages[kPages];
  for (std::uint64_t at = va; at < end;) {
    unsigned long count = 0;
    for (; count < kPages && at < end; at = (at & ~(kPage - 1)) + kPage) {
      pages[count++] = {reinterpret_cast<void*>(at), 1};
    }
    const iovec ours{sink, count};
    const long n = syscall(SYS_process_vm_readv, getpid(), &ours, 1, pages, count, 0);
    if (n < 0 && errno != EFAULT) return true;
    if (n != static_cast<long>(count)) return false;
  }
  return true;
}

}  // namespace vrb::local
