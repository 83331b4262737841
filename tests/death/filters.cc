// SPDX-License-Identifier: Apache-2.0
#include "filters.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vrb::death {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Outside SystemCallFilter=@system-service, or inside ~@privileged @resources (systemd.exec(5)),
// as far as a library that serves RDMA could come to use them.
constexpr long kForbidden[] = {SYS_sched_setaffinity,
                               SYS_sched_setattr,
                               SYS_sched_setparam,
                               SYS_sched_setscheduler,
                               SYS_setpriority,
                               SYS_setrlimit,
                               SYS_ioprio_set,
                               SYS_mbind,
                               SYS_set_mempolicy,
                               SYS_move_pages,
                               SYS_migrate_pages,
                               SYS_mincore,
                               SYS_pidfd_getfd,
                               SYS_perf_event_open,
                               SYS_bpf,
                               SYS_ptrace,
                               SYS_mount,
                               SYS_umount2,
                               SYS_unshare,
                               SYS_setns,
                               SYS_chroot,
                               SYS_pivot_root,
                               SYS_init_module,
                               SYS_finit_module,
                               SYS_reboot,
                               SYS_swapon,
                               SYS_swapoff,
                               SYS_acct,
                               SYS_settimeofday,
                               SYS_clock_settime,
                               SYS_quotactl,
                               SYS_io_uring_setup,
                               SYS_io_uring_register,
                               SYS_kcmp,
                               SYS_name_to_handle_at,
                               SYS_open_by_handle_at,
                               SYS_chown,
                               SYS_fchown,
                               SYS_setuid,
                               SYS_setgid,
                               SYS_setresuid,
                               SYS_setresgid,
                               SYS_capset};

class Program {
 public:
  Program() {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    jump(kArchitecture, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  }
  void answer(long call, std::uint32_t action) {
    jump(static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, action);
  }
  // The same for a first argument only; ends the look at the number, so it comes last.
  void answer_argument(long call, std::uint32_t argument, std::uint32_t action) {
    jump(static_cast<std::uint32_t>(call), 0, 3);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args));
    jump(argument, 0, 1);
    add(BPF_RET | BPF_K, action);
  }
  bool install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void add(int code, std::uint32_t k) {
    code_.push_back(BPF_STMT(static_cast<unsigned short>(code), k));
  }
  void jump(std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no));
  }
  std::vector<sock_filter> code_;
};

}  // namespace

bool install_filter(std::string_view name) {
  Program program;
  if (name == "no-cma") {
    program.answer(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM);
    program.answer(SYS_process_vm_writev, SECCOMP_RET_ERRNO | EPERM);
  } else if (name == "service") {
    for (const long call : kForbidden) program.answer(call, SECCOMP_RET_KILL_PROCESS);
    program.answer_argument(SYS_socket, AF_NETLINK, SECCOMP_RET_KILL_PROCESS);
  } else {
    return false;
  }
  return program.install();
}

}  // namespace vrb::death
